import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '../limits.ts';
import { QUOTA_SETTINGS, quotaLimits } from './quota-settings.ts';

test('each setting is one limit, and has the server’s default', () => {
  const defaults = Object.entries(QUOTA_SETTINGS).map(([name, setting]) => [
    name,
    'default' in setting ? setting.default : undefined,
  ]);
  const limits = quotaLimits(Object.fromEntries(defaults));
  assert.equal(Object.keys(limits).length, defaults.length);
  assert.deepEqual({ ...LIMITS, ...limits }, LIMITS);
});

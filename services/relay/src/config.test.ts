import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from '@hopline/lifecycle';
import { carryAfterMs, relayConfig } from './config.ts';

const DAY_MS = 24 * 60 * 60_000;

test('a task is carried forward at half of its retention, or when the setting says, which is never too late', () => {
  const at = (env: Record<string, string>) => carryAfterMs(relayConfig.load(env));
  assert.equal(at({}), 3.5 * DAY_MS);
  assert.equal(at({ HOPLINE_TASKS_AGE_MS: `${DAY_MS}` }), DAY_MS / 2);
  assert.equal(at({ HOPLINE_TASKS_AGE_MS: `${DAY_MS}`, HOPLINE_CARRY_AFTER_MS: `${DAY_MS - 1}` }), DAY_MS - 1);
  for (const late of [DAY_MS, 2 * DAY_MS])
    assert.throws(() => at({ HOPLINE_TASKS_AGE_MS: `${DAY_MS}`, HOPLINE_CARRY_AFTER_MS: `${late}` }), ConfigError);
});

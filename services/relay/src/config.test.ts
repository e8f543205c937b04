import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from '@hopline/lifecycle';
import { copyForwardAfterMs, relayConfig } from './config.ts';

const DAY_MS = 24 * 60 * 60_000;

test('a task is copied forward at half of its retention by default; the setting must be less than the retention', () => {
  const at = (env: Record<string, string>) => copyForwardAfterMs(relayConfig.load(env));
  assert.equal(at({}), 3.5 * DAY_MS);
  assert.equal(at({ HOPLINE_TASKS_AGE_MS: `${DAY_MS}` }), DAY_MS / 2);
  assert.equal(at({ HOPLINE_TASKS_AGE_MS: `${DAY_MS}`, HOPLINE_COPY_FORWARD_AFTER_MS: `${DAY_MS - 1}` }), DAY_MS - 1);
  for (const late of [DAY_MS, 2 * DAY_MS])
    assert.throws(() => at({ HOPLINE_TASKS_AGE_MS: `${DAY_MS}`, HOPLINE_COPY_FORWARD_AFTER_MS: `${late}` }), ConfigError);
});

const HOUR_MS = 60 * 60_000;

test('auth-required has a default time limit, input-required has none; both settings work at their bounds', () => {
  const { HOPLINE_AUTH_REQUIRED_TIMEOUT_MS, HOPLINE_INPUT_TIMEOUT_MS } = relayConfig.load({});
  assert.deepEqual([HOPLINE_AUTH_REQUIRED_TIMEOUT_MS, HOPLINE_INPUT_TIMEOUT_MS], [HOUR_MS, undefined]);
  for (const name of ['HOPLINE_AUTH_REQUIRED_TIMEOUT_MS', 'HOPLINE_INPUT_TIMEOUT_MS'] as const) {
    for (const value of [100, 365 * 24 * HOUR_MS]) assert.equal(relayConfig.load({ [name]: `${value}` })[name], value);
    for (const value of [99, 365 * 24 * HOUR_MS + 1]) {
      assert.throws(() => relayConfig.load({ [name]: `${value}` }), ConfigError);
    }
  }
});

import assert from 'node:assert/strict';
import test from 'node:test';
import { defineServiceConfig, SERVICE_SETTINGS } from './service-settings.ts';

test('a service has common and own settings and can override a default', () => {
  const config = defineServiceConfig({
    HOPLINE_PORT: { ...SERVICE_SETTINGS.HOPLINE_PORT, default: 8001 },
    HOPLINE_SHARDS: { type: 'integer', default: 16, min: 1, doc: 'Shards.' },
  });
  const settings = config.load({ HOPLINE_SHARDS: '4' });
  const level: string = settings.HOPLINE_LOG_LEVEL;
  assert.deepEqual(
    [settings.HOPLINE_PORT, settings.HOPLINE_SHARDS, level, settings.HOPLINE_INSTANCE],
    [8001, 4, 'info', undefined],
  );
});

test('HOPLINE_PORT and HOPLINE_DRAIN_MS_MAX are checked at their bounds', () => {
  const { load } = defineServiceConfig({});
  for (const env of [{ HOPLINE_PORT: '0' }, { HOPLINE_PORT: '65535' }, { HOPLINE_DRAIN_MS_MAX: '600000' }]) assert.ok(load(env));
  for (const env of [{ HOPLINE_PORT: '-1' }, { HOPLINE_PORT: '65536' }, { HOPLINE_DRAIN_MS_MAX: '600001' }])
    assert.throws(() => load(env), new RegExp(Object.keys(env)[0]!));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, defineServiceConfig } from '@hopline/lifecycle';
import { CORS_ORIGINS_MAX, corsFromSettings } from './cors-settings.ts';
import { ENDPOINT_SETTINGS, withEndpointChecked } from './endpoint-settings.ts';

const { load } = withEndpointChecked(defineServiceConfig(ENDPOINT_SETTINGS));
const rulesOf = (env: Record<string, string>) => corsFromSettings(load(env));
const origins = (count: number) => Array.from({ length: count }, (_, index) => `https://a${index}.example`).join();

test('without origins no page has access; otherwise only the listed ones, with the API key header', () => {
  assert.equal(rulesOf({}), undefined);
  assert.deepEqual(rulesOf({ HOPLINE_CORS_ORIGINS: 'https://a.example, http://127.0.0.1:8080 ,http://[::1]:1' }), {
    origins: ['https://a.example', 'http://127.0.0.1:8080', 'http://[::1]:1'],
    requestHeaders: ['x-api-key'],
  });
  assert.deepEqual(rulesOf({ HOPLINE_CORS_ORIGINS: '*', HOPLINE_AUTH_API_KEY_HEADER: 'x-own' }), {
    origins: '*',
    requestHeaders: ['x-own'],
  });
});

test('an origin that no browser sends is refused at start', () => {
  const wrong = [
    'https://a.example/',
    'https://a.example/app',
    'https://a.example:443',
    'https://A.example',
    'https://ä.example',
    'https://user@a.example',
    'https://*.example',
    'a.example',
    'null',
    'file://',
    'ftp://a.example',
    '*,https://a.example',
    'https://a.example,,https://b.example',
    ',',
  ];
  for (const value of wrong) {
    assert.throws(
      () => load({ HOPLINE_CORS_ORIGINS: value }),
      (error: unknown) => error instanceof ConfigError && /^HOPLINE_CORS_ORIGINS must contain origins/.test(error.faults[0]!),
      value,
    );
  }
  assert.equal(
    load({ HOPLINE_CORS_ORIGINS: origins(CORS_ORIGINS_MAX) }).HOPLINE_CORS_ORIGINS?.split(',').length,
    CORS_ORIGINS_MAX,
  );
  assert.throws(() => load({ HOPLINE_CORS_ORIGINS: origins(CORS_ORIGINS_MAX + 1) }), /more than 64 origins/);
});

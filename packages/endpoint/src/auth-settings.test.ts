import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { defineServiceConfig } from '@hopline/lifecycle';
import { authFromSettings } from './auth-settings.ts';
import { ENDPOINT_SETTINGS, withEndpointChecked } from './endpoint-settings.ts';
import { AUDIENCE, createIssuer, folder, ISSUER, recordingLogger } from './issuer.test-kit.ts';

const config = withEndpointChecked(defineServiceConfig(ENDPOINT_SETTINGS));
const TOKENS = {
  HOPLINE_AUTH_ISSUER: ISSUER,
  HOPLINE_AUTH_AUDIENCE: AUDIENCE,
  HOPLINE_AUTH_JWKS_URL: 'https://issuer.example/jwks',
};

test('a public address without authentication is refused unless it is allowed explicitly', () => {
  const refused = /^ConfigError: HOPLINE_HOST is not loopback and authentication is off: .*HOPLINE_AUTH_NONE_ON_PUBLIC=true/;
  for (const host of ['0.0.0.0', '::', '10.0.0.1', 'ingress', '2001:db8::1', '127.0.0.1.example']) {
    assert.throws(() => config.load({ HOPLINE_HOST: host }), refused, host);
    assert.ok(config.load({ HOPLINE_HOST: host, HOPLINE_AUTH_NONE_ON_PUBLIC: 'true' }));
    assert.ok(config.load({ HOPLINE_HOST: host, HOPLINE_AUTH_API_KEYS_FILE: 'keys.json' }));
    assert.ok(config.load({ HOPLINE_HOST: host, ...TOKENS }));
  }
  for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '::1', '[::1]', '::ffff:127.0.0.1', undefined]) {
    assert.ok(config.load({ HOPLINE_HOST: host }));
  }
});

test('contradictory settings are reported by name, all at once', () => {
  const cases: [env: Record<string, string>, expected: RegExp][] = [
    [{ HOPLINE_AUTH_ISSUER: ISSUER }, /must be set together/],
    [{ HOPLINE_AUTH_JWKS_URL: 'https://x/' }, /must be set together/],
    [{ ...TOKENS, HOPLINE_AUTH_JWKS_FILE: 'x' }, /must not both be set/],
    [{ ...TOKENS, HOPLINE_AUTH_JWKS_URL: 'http://issuer.example/jwks' }, /must start with https/],
    [{ ...TOKENS, HOPLINE_AUTH_JWKS_URL: 'https://a:b@issuer.example/jwks' }, /must not contain a user name/],
    [{ HOPLINE_AUTH_ALGORITHMS: 'RS256,HS256' }, /HOPLINE_AUTH_ALGORITHMS must be one or more of/],
    [{ HOPLINE_AUTH_ALGORITHMS: 'none' }, /HOPLINE_AUTH_ALGORITHMS must be one or more of/],
    [{ HOPLINE_AUTH_ALGORITHMS: ',' }, /HOPLINE_AUTH_ALGORITHMS must be one or more of/],
    [{ HOPLINE_AUTH_API_KEY_HEADER: 'X-Key' }, /must consist of a-z/],
    [{ HOPLINE_AUTH_API_KEY_HEADER: 'authorization' }, /must not be authorization/],
    [{ HOPLINE_TENANTS: 't'.repeat(129) }, /names of up to 128 characters/],
    [{ HOPLINE_TENANTS: Array.from({ length: 1001 }, (_, n) => n).join(',') }, /more than 1000 names/],
    [{ ...TOKENS, HOPLINE_TENANTS: 'acme' }, /must not be set together with HOPLINE_AUTH_ISSUER/],
  ];
  for (const [env, expected] of cases) assert.throws(() => config.load(env), expected);
  assert.ok(config.load({ ...TOKENS, HOPLINE_AUTH_JWKS_URL: 'http://127.0.0.1:9/jwks' }));
  assert.ok(config.load({ HOPLINE_TENANTS: Array.from({ length: 1000 }, (_, n) => n).join(',') }));
  const numbers = { HOPLINE_AUTH_JWKS_STALE_MS: '604800000', HOPLINE_AUTH_CLOCK_TOLERANCE_MS: '300000' };
  assert.ok(config.load(numbers));
  for (const name of Object.keys(numbers) as (keyof typeof numbers)[]) {
    for (const value of ['-1', String(Number(numbers[name]) + 1)])
      assert.throws(() => config.load({ [name]: value }), new RegExp(name));
  }
});

test('the authenticator follows its settings', async t => {
  const at = await folder(t);
  const issuer = await createIssuer('k1', 'ES384');
  await writeFile(at('jwks.json'), issuer.keySet);
  const { logger } = recordingLogger();
  const { HOPLINE_AUTH_JWKS_URL: _url, ...tokens } = TOKENS;
  const env = { ...tokens, HOPLINE_AUTH_JWKS_FILE: at('jwks.json'), HOPLINE_AUTH_TENANT_CLAIM: 'org' };
  const authorization = `Bearer ${await issuer.token({ org: 'acme' })}`;
  const request = { headers: { authorization }, tenant: undefined };
  const standard = await authFromSettings(config.load(env), { logger });
  await assert.rejects(standard.authenticate(request), { code: 'UNAUTHENTICATED' });
  const wider = await authFromSettings(config.load({ ...env, HOPLINE_AUTH_ALGORITHMS: 'ES256, ES384' }), { logger });
  assert.deepEqual(await wider.authenticate(request), { subject: 'ann', tenant: 'acme' });
  const none = await authFromSettings(config.load({ HOPLINE_TENANTS: 'a, b' }), { logger });
  assert.deepEqual(await none.authenticate({ headers: {}, tenant: 'b' }), { tenant: 'b' });
});

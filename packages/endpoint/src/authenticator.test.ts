import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { A2AError } from '@hopline/a2a';
import { succeeds } from '../../../test/kit/succeeds.ts';
import { until } from '../../../test/kit/until.ts';
import { type AuthOptions, createAuthenticator, type Headers } from './authenticator.ts';
import { createIssuer, folder, inSeconds, RULES, recordingLogger } from './issuer.test-kit.ts';

const issuer = await createIssuer();
const KEY = 'a-key-that-was-given-out';

async function open(t: TestContext, { bearer = true, apiKeys = true, tenants = [] as string[] } = {}) {
  const at = await folder(t);
  await writeFile(at('jwks.json'), issuer.keySet);
  await writeFile(at('keys.json'), JSON.stringify([{ key_sha256: hash('sha256', KEY), subject: 'ci', tenant: 'acme' }]));
  const { logger, lines } = recordingLogger();
  const options: AuthOptions = {
    ...(bearer && { bearer: { ...RULES, keys: { file: at('jwks.json') } } }),
    ...(apiKeys && { apiKeys: { file: at('keys.json'), header: 'x-api-key' } }),
    tenants,
    logger,
  };
  const authenticator = await createAuthenticator(options);
  t.after(() => authenticator.close());
  const authenticate = (headers: Headers, tenant?: string) => authenticator.authenticate({ headers, tenant });
  const refused = async (
    headers: Record<string, string | string[]>,
  ): Promise<[message: string, challenge: string | undefined]> => {
    const error = await authenticate(headers).then(
      () => assert.fail('it was accepted'),
      (thrown: unknown) => thrown as A2AError,
    );
    assert.equal(error.code, 'UNAUTHENTICATED');
    return [error.message, error.challenge];
  };
  return { authenticate, card: authenticator.card, checks: authenticator.checks, refused, lines, at };
}

test('a token or a key identifies the caller; without either, the challenge names what to send [S4-4]', async t => {
  const { authenticate, refused } = await open(t);
  const token = await issuer.token({ tenant: 'acme' });
  for (const authorization of [`Bearer ${token}`, `bearer   ${token} `]) {
    assert.deepEqual(await authenticate({ authorization }), { subject: 'ann', tenant: 'acme' });
  }
  assert.deepEqual(await authenticate({ 'x-api-key': KEY }), { subject: 'ci', tenant: 'acme' });
  assert.deepEqual(await authenticate({ authorization: 'Basic eA==', 'x-api-key': KEY }), { subject: 'ci', tenant: 'acme' });
  const challenge = 'Bearer realm="hopline", ApiKey realm="hopline", header="x-api-key"';
  for (const headers of [{}, { authorization: 'Basic eA==' }, { authorization: token }]) {
    assert.deepEqual(await refused(headers as Record<string, string>), [
      'Authentication required: credentials are missing',
      challenge,
    ]);
  }
});

test('refused credentials are reported as expired or not valid, and never logged', async t => {
  const { refused, lines } = await open(t);
  const [expired] = await refused({ authorization: `Bearer ${await issuer.token({ exp: inSeconds(-120) })}` });
  assert.equal(expired, 'Authentication required: the token has expired');
  const wrong: Record<string, string | string[]>[] = [
    { authorization: 'Bearer SECRET' },
    { authorization: `Bearer ${await issuer.token({ aud: 'another' })}` },
    { authorization: 'Bearer SECRET', 'x-api-key': KEY },
    { 'x-api-key': 'SECRET-SECRET-SECRET' },
    { 'x-api-key': [KEY, KEY] },
    { 'x-api-key': `${KEY}, ${KEY}` },
  ];
  for (const headers of wrong) {
    const [message, challenge] = await refused(headers);
    assert.equal(message, 'Authentication required: the credentials are not valid');
    assert.match(challenge!, /^Bearer realm="hopline", error="invalid_token"/);
  }
  for (const key of ['', 'a'.repeat(15), 'a'.repeat(513)]) {
    const [message] = await refused({ 'x-api-key': key });
    assert.equal(message, 'Authentication required: an API key has 16 to 512 characters');
  }
  assert.deepEqual(lines, []);
});

test('each mode ignores the credentials of the other', async t => {
  const tokens = await open(t, { apiKeys: false });
  assert.deepEqual(await tokens.refused({ 'x-api-key': KEY }), [
    'Authentication required: credentials are missing',
    'Bearer realm="hopline"',
  ]);
  const keys = await open(t, { bearer: false });
  const [message, challenge] = await keys.refused({ authorization: `Bearer ${await issuer.token()}` });
  assert.deepEqual(
    [message, challenge],
    ['Authentication required: credentials are missing', 'ApiKey realm="hopline", header="x-api-key"'],
  );
});

test('the card states the required credentials in the forms of 1.0 and 0.3 [S4-4]', async t => {
  assert.deepEqual((await open(t)).card, {
    securitySchemes: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        bearerFormat: 'JWT',
        httpAuthSecurityScheme: { scheme: 'bearer', bearerFormat: 'JWT' },
      },
      apiKey: {
        type: 'apiKey',
        in: 'header',
        name: 'x-api-key',
        apiKeySecurityScheme: { location: 'header', name: 'x-api-key' },
      },
    },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }, { schemes: { apiKey: { list: [] } } }],
    security: [{ bearer: [] }, { apiKey: [] }],
  });
  assert.deepEqual((await open(t, { apiKeys: false })).card?.security, [{ bearer: [] }]);
});

test('without authentication every caller is anonymous and the card has no security', async t => {
  const { authenticate, card } = await open(t, { bearer: false, apiKeys: false });
  assert.deepEqual(await authenticate({ authorization: 'Bearer whatever' }), {});
  assert.equal(card, undefined);
});

test('tenants come only from credentials; another tenant is not found', async t => {
  const { authenticate } = await open(t);
  const bearer = async (claims: object) => ({ authorization: `Bearer ${await issuer.token({ ...claims })}` });
  const ann = await bearer({ tenant: 'acme' });
  for (const tenant of [undefined, '', 'acme'])
    assert.deepEqual(await authenticate(ann, tenant), { subject: 'ann', tenant: 'acme' });
  assert.deepEqual(await authenticate({ 'x-api-key': KEY }, 'acme'), { subject: 'ci', tenant: 'acme' });
  const bob = await bearer({ sub: 'bob' });
  for (const headers of [ann, bob, { 'x-api-key': KEY }])
    await assert.rejects(authenticate(headers, 'umbrella'), { code: 'TASK_NOT_FOUND' });
  await assert.rejects(authenticate(bob, 'acme'), { code: 'TASK_NOT_FOUND' });
  await assert.rejects(
    authenticate({}, 'umbrella'),
    { code: 'UNAUTHENTICATED' },
    'an unauthenticated caller learns nothing of tenants',
  );
});

test('without authentication only listed tenants can be named', async t => {
  const { authenticate } = await open(t, { bearer: false, apiKeys: false, tenants: ['acme'] });
  assert.deepEqual([await authenticate({}), await authenticate({}, 'acme')], [{}, { tenant: 'acme' }]);
  await assert.rejects(authenticate({}, 'umbrella'), { code: 'TASK_NOT_FOUND' });
});

test('keys removed from the file are refused from then on; a broken file is logged and changes nothing', async t => {
  const { authenticate, checks, at, lines } = await open(t);
  const failing = async () =>
    (await Promise.allSettled(checks.map(({ check }) => check(t.signal)))).flatMap(({ status }, index) =>
      status === 'rejected' ? [checks[index]!.name] : [],
    );
  assert.deepEqual(await failing(), []);
  await writeFile(at('keys.json'), 'SECRET');
  while (lines.length === 0) {
    assert.deepEqual(await authenticate({ 'x-api-key': KEY }), { subject: 'ci', tenant: 'acme' });
    await sleep(20);
  }
  assert.match(lines.join(''), /HOPLINE_AUTH_API_KEYS_FILE changed and cannot be used/);
  assert.doesNotMatch(lines.join(''), /SECRET/);
  assert.deepEqual(await failing(), ['api_keys']);
  await writeFile(at('keys.json'), '[]');
  const taken = () => succeeds(authenticate({ 'x-api-key': KEY }));
  await until(async () => !(await taken()));
  assert.deepEqual(await failing(), []);
});

test('an unusable file at start is reported with its setting', async t => {
  const at = await folder(t);
  const { logger } = recordingLogger();
  const apiKeys = { file: at('none.json'), header: 'x-api-key' };
  await assert.rejects(
    createAuthenticator({ apiKeys, tenants: [], logger }),
    /^Error: HOPLINE_AUTH_API_KEYS_FILE: the file cannot be read/,
  );
});

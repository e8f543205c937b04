import assert from 'node:assert/strict';
import { createHash, createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign as signBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createAuthenticator } from '@hopline/endpoint';
import { logger, openServers } from './open-servers.ts';
import { exchangeRaw, requestText } from './raw-http.ts';

const ISSUER = 'https://issuer.example';
const AUDIENCE = 'hopline';

type Json = Readonly<Record<string, unknown>>;

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const forged = generateKeyPairSync('rsa', { modulusLength: 2048 });
const jwkOf = (key: KeyObject, kid: string, alg: string) => ({ ...key.export({ format: 'jwk' }), kid, alg, use: 'sig' });
const RSA_JWK = jwkOf(rsa.publicKey, 'rsa', 'RS256');
const KEY_SET = JSON.stringify({ keys: [RSA_JWK, jwkOf(ec.publicKey, 'ec', 'ES256')] });

const now = () => Math.floor(Date.now() / 1000);
const claims = (more: Json = {}): Json => ({ iss: ISSUER, aud: AUDIENCE, sub: 'ann', exp: now() + 600, ...more });
const part = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

type Signer = (text: string) => Buffer;
const rs256 =
  (key: KeyObject, hash = 'sha256'): Signer =>
  text =>
    signBytes(hash, Buffer.from(text), key);
const es256: Signer = text => signBytes('sha256', Buffer.from(text), { key: ec.privateKey, dsaEncoding: 'ieee-p1363' });
const hmac =
  (secret: string | Buffer, hash = 'sha256'): Signer =>
  text =>
    createHmac(hash, secret).update(text).digest();

/** Tokens of the issuer with other claims or headers, and tokens that it did not sign. */
function token(payload: unknown = claims(), head: Json = {}, signer: Signer = rs256(rsa.privateKey)): string {
  const text = `${part({ alg: 'RS256', kid: 'rsa', ...head })}.${part(payload)}`;
  return `${text}.${signer(text).toString('base64url')}`;
}

const [HEAD = '', BODY = '', SIGNATURE = ''] = token().split('.');
const RSA_PEM = rsa.publicKey.export({ format: 'pem', type: 'spki' });
const ownJwk = jwkOf(forged.publicKey, 'rsa', 'RS256');
const zeros = () => Buffer.alloc(64);

const FORGED: Record<string, string> = {
  'alg none': `${part({ alg: 'none' })}.${BODY}.`,
  'alg None': `${part({ alg: 'None' })}.${BODY}.`,
  'alg NONE with a signature': `${part({ alg: 'NONE', kid: 'rsa' })}.${BODY}.${SIGNATURE}`,
  'alg empty': `${part({ alg: '', kid: 'rsa' })}.${BODY}.${SIGNATURE}`,
  'no alg': `${part({ kid: 'rsa' })}.${BODY}.${SIGNATURE}`,
  'alg as an array': token(claims(), { alg: ['RS256'] }),
  'HS256 with the public key in PEM': token(claims(), { alg: 'HS256' }, hmac(RSA_PEM)),
  'HS256 with the modulus': token(claims(), { alg: 'HS256' }, hmac(Buffer.from(String(RSA_JWK.n), 'base64url'))),
  'HS256 with the key set': token(claims(), { alg: 'HS256' }, hmac(KEY_SET)),
  'HS256 with an empty secret': token(claims(), { alg: 'HS256' }, hmac('')),
  'HS512 with the public key in PEM': token(claims(), { alg: 'HS512' }, hmac(RSA_PEM, 'sha512')),
  'RS384, which is not configured': token(claims(), { alg: 'RS384' }, rs256(rsa.privateKey, 'sha384')),
  'PS256, which is not configured': token(claims(), { alg: 'PS256' }),
  'a key of its own under the id of the issuer': token(claims(), {}, rs256(forged.privateKey)),
  'a key of its own in jwk': token(claims(), { jwk: ownJwk }, rs256(forged.privateKey)),
  'a key of its own in jwk without kid': token(claims(), { kid: undefined, jwk: ownJwk }, rs256(forged.privateKey)),
  'a key of its own by jku': token(claims(), { jku: 'http://127.0.0.1:1/jwks.json' }, rs256(forged.privateKey)),
  'a key of its own by x5u': token(claims(), { x5u: 'http://127.0.0.1:1/cert.pem' }, rs256(forged.privateKey)),
  'a key of its own in x5c': token(
    claims(),
    { x5c: [forged.publicKey.export({ format: 'der', type: 'spki' }).toString('base64')] },
    rs256(forged.privateKey),
  ),
  'kid of the other key': token(claims(), { kid: 'ec' }),
  'ES256 with the RSA key': token(claims(), { alg: 'ES256', kid: 'ec' }),
  'kid unknown': token(claims(), { kid: 'other' }),
  'kid absent, with two keys': token(claims(), { kid: undefined, alg: 'HS256' }, hmac('x')),
  'kid is a path': token(claims(), { kid: '../../../../dev/null', alg: 'HS256' }, hmac('')),
  'kid is __proto__': token(claims(), { kid: '__proto__' }),
  'kid is constructor': token(claims(), { kid: 'constructor' }),
  'kid is an array': token(claims(), { kid: ['rsa'] }),
  'kid is an object': token(claims(), { kid: { rsa: 1 } }),
  'kid is a number': token(claims(), { kid: 0 }),
  'kid is SQL': token(claims(), { kid: "x' OR '1'='1" }),
  'crit unknown': token(claims(), { crit: ['exp2'], exp2: 1 }),
  'crit empty': token(claims(), { crit: [] }),
  'payload not encoded (b64)': token(claims(), { b64: false, crit: ['b64'] }),
  'ES256 all zero': token(claims(), { alg: 'ES256', kid: 'ec' }, zeros),
  'ES256 in DER': token(claims(), { alg: 'ES256', kid: 'ec' }, text => signBytes('sha256', Buffer.from(text), ec.privateKey)),
  'another body': `${HEAD}.${part(claims({ sub: 'bob' }))}.${SIGNATURE}`,
  'another head': `${part({ alg: 'RS256', kid: 'rsa', x: 1 })}.${BODY}.${SIGNATURE}`,
  'signature cut': `${HEAD}.${BODY}.${SIGNATURE.slice(0, -4)}`,
  'signature empty': `${HEAD}.${BODY}.`,
  'signature absent': `${HEAD}.${BODY}`,
  'signature of another token': `${HEAD}.${BODY}.${token(claims({ sub: 'bob' })).split('.')[2]}`,
  'four parts': `${HEAD}.${BODY}.${SIGNATURE}.x`,
  'five parts (JWE)': `${part({ alg: 'dir', enc: 'A256GCM' })}..${part('x')}.${part('x')}.${part('x')}`,
  'JSON serialization': JSON.stringify({ protected: HEAD, payload: BODY, signature: SIGNATURE }),
  'blanks inside': `${HEAD}. ${BODY}.${SIGNATURE}`,
  'nothing but dots': '..',
  garbage: randomBytes(64).toString('base64url'),
  'longer than any token': token(claims({ pad: 'p'.repeat(9_000) })),
};

const OWN_FAULTS: Record<string, unknown> = {
  'expired beyond the tolerance': claims({ exp: now() - 60 }),
  'no exp': claims({ exp: undefined }),
  'exp null': claims({ exp: null }),
  'exp is text': claims({ exp: String(now() + 600) }),
  'exp negative': claims({ exp: -1 }),
  'not valid yet': claims({ nbf: now() + 120 }),
  'nbf is text': claims({ nbf: 'x' }),
  'another issuer': claims({ iss: 'https://evil.example' }),
  'no issuer': claims({ iss: undefined }),
  'issuer with a slash more': claims({ iss: `${ISSUER}/` }),
  'issuer in upper case': claims({ iss: ISSUER.toUpperCase() }),
  'issuers as an array': claims({ iss: [ISSUER] }),
  'another audience': claims({ aud: 'other' }),
  'no audience': claims({ aud: undefined }),
  'audience with a suffix': claims({ aud: `${AUDIENCE}2` }),
  'audience as an object': claims({ aud: { hopline: true } }),
  'empty audiences': claims({ aud: [] }),
  'no subject': claims({ sub: undefined }),
  'empty subject': claims({ sub: '' }),
  'subject is a number': claims({ sub: 7 }),
  'subject is an array': claims({ sub: ['ann'] }),
  'subject has a NUL': claims({ sub: 'ann\u0000' }),
  'subject is too long': claims({ sub: 's'.repeat(2_000) }),
  'tenant is a number': claims({ tenant: 7 }),
  'tenant is an array': claims({ tenant: ['a'] }),
  'tenant is an object': claims({ tenant: {} }),
  'tenant is null': claims({ tenant: null }),
  'tenant is empty': claims({ tenant: '' }),
  'tenant has a NUL': claims({ tenant: 'a\u0000b' }),
  'claims as an array': [claims()],
  'claims as text': 'ann',
};

const VALID: Record<string, () => string> = {
  'of the RSA key': () => token(),
  'of the EC key': () => token(claims(), { alg: 'ES256', kid: 'ec' }, es256),
  'for several audiences': () => token(claims({ aud: ['other', AUDIENCE] })),
  'expired within the tolerance': () => token(claims({ exp: now() - 5 })),
  'with a tenant': () => token(claims({ tenant: 'a' })),
};

/** Wrong places and forms for a valid token. */
const PRESENTED: Record<string, (valid: string) => Readonly<Record<string, string | readonly string[]>>> = {
  'another scheme': valid => ({ authorization: `Token ${valid}` }),
  Basic: valid => ({ authorization: `Basic ${Buffer.from(`x:${valid}`).toString('base64')}` }),
  'no scheme': valid => ({ authorization: valid }),
  'only the scheme': () => ({ authorization: 'Bearer' }),
  'two tokens in one header': valid => ({ authorization: `Bearer x, Bearer ${valid}` }),
  'a bad one first, in two headers': valid => ({ authorization: ['Bearer x', `Bearer ${valid}`] }),
  'a cookie': valid => ({ cookie: `authorization=Bearer ${valid}; access_token=${valid}` }),
  'the header of a proxy': valid => ({
    'proxy-authorization': `Bearer ${valid}`,
    'x-forwarded-authorization': `Bearer ${valid}`,
  }),
  'the header of keys': valid => ({ 'x-api-key': valid }),
};

const KEY = 'a-key-of-32-characters-or-longer';
const KEYS: Record<string, Readonly<Record<string, string | readonly string[]>>> = {
  'another key': { 'x-api-key': 'b-key-of-32-characters-or-longer' },
  'a prefix': { 'x-api-key': KEY.slice(0, -1) },
  'with more behind it': { 'x-api-key': `${KEY}x` },
  'in upper case': { 'x-api-key': KEY.toUpperCase() },
  'two keys joined': { 'x-api-key': `${KEY},${KEY}` },
  'two headers': { 'x-api-key': [KEY, KEY] },
  empty: { 'x-api-key': '' },
  'too short': { 'x-api-key': 'a'.repeat(15) },
  'too long': { 'x-api-key': 'a'.repeat(513) },
  'as a token': { authorization: `Bearer ${KEY}` },
  'as a password': { authorization: `Basic ${Buffer.from(`x:${KEY}`).toString('base64')}` },
  'in another header': { 'api-key': KEY, apikey: KEY, 'x-apikey': KEY },
  'in a cookie': { cookie: `x-api-key=${KEY}` },
  'beside a bad token': { 'x-api-key': KEY, authorization: 'Bearer x' },
};

test('tokens and keys over HTTP', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hopline-tokens-'));
  const [jwks, keysFile] = [join(folder, 'jwks.json'), join(folder, 'keys.json')];
  await writeFile(jwks, KEY_SET);
  await writeFile(keysFile, JSON.stringify([{ key_sha256: createHash('sha256').update(KEY).digest('hex'), subject: 'ci' }]));
  const auth = await createAuthenticator({
    bearer: {
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithms: ['RS256', 'ES256'],
      clockToleranceMs: 30_000,
      tenantClaim: 'tenant',
      keys: { file: jwks },
    },
    apiKeys: { file: keysFile, header: 'x-api-key' },
    tenants: [],
    logger,
  });
  t.after(() => rm(folder, { recursive: true }));
  const { urls } = await openServers(t, { auth });
  const list = (headers: Readonly<Record<string, string | readonly string[]>>, query = '') =>
    exchangeRaw(
      urls.ingress,
      requestText({ line: `GET /tasks${query}`, headers: { host: 'h', 'a2a-version': '1.0', ...headers } }),
    );
  const bearer = (value: string) => ({ authorization: `Bearer ${value}` });
  const refused = async (...[headers, query]: Parameters<typeof list>) => {
    const { status, head, body } = await list(headers, query);
    assert.equal(status, 401, body);
    assert.match(head, /www-authenticate: Bearer/i);
    assert.match(
      body,
      /credentials are missing|the token has expired|the credentials are not valid|an API key has 16 to 512 characters/,
    );
  };
  for (const [name, value] of Object.entries(VALID))
    await t.test(`a token is accepted: ${name}`, async () => assert.equal((await list(bearer(value()))).status, 200));
  await t.test('the scheme is accepted in any case', async () =>
    assert.equal((await list({ authorization: `bEaReR ${token()}` })).status, 200),
  );
  for (const [name, value] of Object.entries(FORGED))
    await t.test(`a forged token is refused: ${name}`, () => refused(bearer(value)));
  for (const [name, payload] of Object.entries(OWN_FAULTS))
    await t.test(`a token of the issuer is refused: ${name}`, () => refused(bearer(token(payload))));
  for (const [name, present] of Object.entries(PRESENTED))
    await t.test(`a valid token is refused in ${name}`, () => refused(present(token())));
  for (const name of ['access_token', 'authorization', 'token'])
    await t.test(`a valid token is refused in the query as ${name}`, () => refused({}, `?${name}=${token()}`));
  await t.test('a key is accepted', async () => assert.equal((await list({ 'x-api-key': KEY })).status, 200));
  for (const [name, headers] of Object.entries(KEYS)) await t.test(`a key is refused: ${name}`, () => refused(headers));
  await t.test('an API key in the query string is rejected', () => refused({}, `?x-api-key=${KEY}`));
  await t.test('no credentials are refused', () => refused({}));
});

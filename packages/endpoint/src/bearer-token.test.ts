import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SignJWT, UnsecuredJWT } from 'jose';
import { TOKEN_CHARS_MAX, verdictOnToken } from './bearer-token.ts';
import { SUBJECT_CHARS_MAX, TENANT_CHARS_MAX } from './caller.ts';
import { AUDIENCE, type Claims, createIssuer, ISSUER, inSeconds, RULES } from './issuer.test-kit.ts';
import { KEYS_MAX, parseKeySet } from './key-set.ts';

const issuer = await createIssuer();
const keys = parseKeySet(issuer.keySet);
const verdict = (token: string, rules = RULES) => verdictOnToken(token, rules, keys);
const refusal = async (token: string, rules = RULES) => {
  const found = await verdict(token, rules);
  return 'refusal' in found ? found.refusal : 'taken';
};

test('a valid token identifies its caller, with its tenant', async () => {
  assert.deepEqual(await verdict(await issuer.token()), { caller: { subject: 'ann' } });
  assert.deepEqual(await verdict(await issuer.token({ tenant: 'acme' })), { caller: { subject: 'ann', tenant: 'acme' } });
  const rules = { ...RULES, tenantClaim: 'https://example/org' };
  const claims = { tenant: 'acme', 'https://example/org': 'umbrella' };
  assert.deepEqual(await verdict(await issuer.token(claims), rules), { caller: { subject: 'ann', tenant: 'umbrella' } });
});

test('a token with another issuer or audience, without expiry or subject, or not yet valid is refused', async () => {
  const claims: Claims[] = [
    { iss: 'https://other.example' },
    { iss: undefined },
    { aud: 'another' },
    { aud: undefined },
    { exp: undefined },
    { sub: undefined },
    { sub: '' },
    { nbf: inSeconds(120) },
  ];
  for (const one of claims) assert.equal(await refusal(await issuer.token(one)), 'not valid', JSON.stringify(one));
  assert.equal(await refusal(await issuer.token({ aud: ['another', AUDIENCE] })), 'taken');
});

test('a token expires, with the configured clock tolerance', async () => {
  assert.equal(await refusal(await issuer.token({ exp: inSeconds(-20) })), 'taken');
  assert.equal(await refusal(await issuer.token({ exp: inSeconds(-40) })), 'expired');
  assert.equal(await refusal(await issuer.token({ exp: inSeconds(-20) }), { ...RULES, clockToleranceMs: 10_000 }), 'expired');
  const stranger = await createIssuer();
  assert.equal(await refusal(await stranger.token({ exp: inSeconds(-40) })), 'not valid', 'a forged token gets no reason');
});

test('only the configured asymmetric algorithms are accepted', async () => {
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'ann', exp: inSeconds(60) };
  assert.equal(await refusal(new UnsecuredJWT(claims).encode()), 'not valid');
  const shared = new TextEncoder().encode(issuer.keySet);
  const forged = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'k1' }).sign(shared);
  assert.equal(await refusal(forged), 'not valid');
  assert.equal(await refusal(await issuer.token(), { ...RULES, algorithms: ['RS256'] }), 'not valid');
  const stranger = await createIssuer();
  assert.equal(await refusal(await stranger.token()), 'not valid', 'the same key id, another key');
  const [head, body, signature] = (await issuer.token()).split('.');
  const other = Buffer.from(JSON.stringify({ ...claims, sub: 'bob' })).toString('base64url');
  assert.equal(await refusal([head, other, signature].join('.')), 'not valid');
  assert.equal(await refusal([head, body].join('.')), 'not valid');
});

test('subject, tenant and token are accepted up to their maximum length', async () => {
  const cases: [claims: Claims, expected: string][] = [
    [{ sub: 's'.repeat(SUBJECT_CHARS_MAX) }, 'taken'],
    [{ sub: 's'.repeat(SUBJECT_CHARS_MAX + 1) }, 'not valid'],
    [{ sub: 'a\u0000b' }, 'not valid'],
    [{ tenant: 't'.repeat(TENANT_CHARS_MAX) }, 'taken'],
    [{ tenant: 't'.repeat(TENANT_CHARS_MAX + 1) }, 'not valid'],
    [{ tenant: '' }, 'not valid'],
    [{ tenant: ['acme'] }, 'not valid'],
    [{ tenant: null }, 'not valid'],
  ];
  for (const [claims, expected] of cases)
    assert.equal(await refusal(await issuer.token(claims)), expected, JSON.stringify(claims));
  const padded = (chars: number) => issuer.token({ pad: 'p'.repeat(chars) });
  const base = (await padded(0)).length;
  const room = Math.floor(((TOKEN_CHARS_MAX - base) / 4) * 3);
  const fits = await padded(room - 3);
  assert.ok(fits.length <= TOKEN_CHARS_MAX && fits.length > TOKEN_CHARS_MAX - 16, String(fits.length));
  assert.equal(await refusal(fits), 'taken');
  const long = await padded(room + 6);
  assert.ok(long.length > TOKEN_CHARS_MAX && long.length < TOKEN_CHARS_MAX + 16, String(long.length));
  assert.equal(await refusal(long), 'not valid');
});

test('a key set with private or secret keys, none, or no valid form is refused without quoting it', () => {
  const cases = [
    '',
    '{}',
    '{"keys":[]}',
    '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}',
    '{"keys":[{"kty":"EC","d":"SECRET"}]}',
    '{"keys":[7]}',
  ];
  for (const text of cases) {
    assert.throws(
      () => parseKeySet(text),
      (error: Error) => error.message.startsWith('the key set') && !error.message.includes('SECRET'),
    );
  }
});

test('the limit of keys in a set holds at its edge', () => {
  const { keys: one } = JSON.parse(issuer.keySet) as { keys: object[] };
  const many = (count: number) => JSON.stringify({ keys: Array.from({ length: count }, () => one[0]) });
  assert.ok(parseKeySet(many(KEYS_MAX)));
  assert.throws(() => parseKeySet(many(KEYS_MAX + 1)), /more than 100 keys/);
});

import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { test } from 'node:test';
import { A2AError, type JsonObject } from '@hopline/a2a';
import { calculateJwkThumbprint, decodeProtectedHeader, type JWK } from 'jose';
import { agentCard } from './agent-card.ts';
import { CardSigner } from './card-signer.ts';
import { SIGNATURES_MAX, verifyAgentCard } from './verify-agent-card.ts';

const card: JsonObject = agentCard({
  name: 'Hopline',
  description: 'd',
  version: '1.2.3',
  url: 'https://h.example/',
  skills: [{ id: 's', name: 'S', description: 'd', tags: ['t'], examples: ['e'] }],
  capabilities: { streaming: true },
  security: {
    securitySchemes: { bearer: { type: 'http', scheme: 'Bearer', httpAuthSecurityScheme: { scheme: 'Bearer' } } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    security: [{ bearer: [] }],
  },
});

const jwk = (key: KeyObject): JWK => key.export({ format: 'jwk' }) as JWK;
const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }) as string;
const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });

const KEYS = [
  { alg: 'ES256', pair: ec('P-256') },
  { alg: 'ES384', pair: ec('P-384') },
  { alg: 'ES512', pair: ec('P-521') },
  { alg: 'EdDSA', pair: generateKeyPairSync('ed25519') },
  { alg: 'RS256', pair: rsa },
];

const refused = (error: unknown) => error instanceof A2AError && error.code === 'INVALID_AGENT_RESPONSE';

test('a card signed with any usual key, as PEM or JWK, verifies as a whole [S4-5]', async () => {
  for (const { alg, pair } of KEYS) {
    for (const key of [pem(pair.privateKey), JSON.stringify({ ...jwk(pair.privateKey), kid: 'own' })]) {
      const signer = await CardSigner.open({ key, jku: 'https://h.example/jwks.json' });
      const signatures = await signer.sign(card);
      const header = decodeProtectedHeader(signatures[0]!);
      const kid = key.startsWith('{') ? 'own' : await calculateJwkThumbprint(jwk(pair.publicKey));
      assert.deepEqual(header, { alg, kid, typ: 'JOSE', jku: 'https://h.example/jwks.json' });
      assert.deepEqual(Object.keys(signatures[0]!).sort(), ['protected', 'signature']);
      const asked: unknown[] = [];
      const verified = await verifyAgentCard({ ...card, signatures }, async (...names) => {
        asked.push(names);
        return jwk(pair.publicKey);
      });
      assert.deepEqual(verified, { signed: card, whole: true, kid });
      assert.deepEqual(asked[0], [kid, 'https://h.example/jwks.json']);
    }
  }
});

test('the configured key id takes precedence; an RSA key may name its algorithm [S4-5]', async () => {
  const key = JSON.stringify({ ...jwk(rsa.privateKey), kid: 'own', alg: 'PS512' });
  const signer = await CardSigner.open({ key, keyId: 'configured' });
  assert.deepEqual([signer.kid, signer.alg], ['configured', 'PS512']);
});

/** Members of the private half of every key type (RFC 7518 6). */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

test('the published key verifies the card, has a key id, and contains nothing private [S4-5]', async () => {
  for (const { alg, pair } of KEYS) {
    for (const key of [
      pem(pair.privateKey),
      JSON.stringify({ ...jwk(pair.privateKey), kid: 'own', ext: true, key_ops: ['sign'] }),
    ]) {
      const signer = await CardSigner.open({ key });
      const { kid, alg: named, use, ...members } = signer.publicKey;
      assert.deepEqual([kid, named, use], [signer.kid, alg, 'sig']);
      assert.deepEqual(members, jwk(pair.publicKey));
      const secrets = PRIVATE_MEMBERS.flatMap(name => (jwk(pair.privateKey) as Record<string, string>)[name] ?? []);
      assert.ok(secrets.length > 0);
      for (const secret of secrets) assert.ok(!JSON.stringify(signer.publicKey).includes(secret));
      const signatures = await signer.sign(card);
      assert.ok(await verifyAgentCard({ ...card, signatures }, async () => signer.publicKey));
    }
  }
});

/** Every document that differs from the given one in a single change: a character, a flag, a removed member or an added member. */
function* tampered(value: unknown): Generator<unknown> {
  if (typeof value === 'string') yield `${value.slice(0, -1)}${value.endsWith('~') ? '-' : '~'}`;
  else if (typeof value === 'boolean') yield !value;
  else if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) {
      for (const changed of tampered(item)) yield value.with(at, changed);
    }
    yield [...value, 'new'];
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, item] of Object.entries(value)) {
      for (const changed of tampered(item)) yield { ...value, [name]: changed };
      const { [name]: _, ...others } = value as JsonObject;
      yield others;
    }
    yield { ...value, new: 1 };
  }
}

test('any change is detected, or lies outside the verified part [S4-5]', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const signer = await CardSigner.open({ key: pem(privateKey) });
  const signatures = await signer.sign(card);
  const keyOf = async () => jwk(publicKey);
  let found = 0;
  let outside = 0;
  for (const changed of tampered(card)) {
    const outcome = await verifyAgentCard({ ...(changed as JsonObject), signatures }, keyOf).catch(refused);
    if (outcome === true) {
      found += 1;
      continue;
    }
    assert.ok(outcome !== false && !outcome.whole);
    // Members of 0.3 are not in the verified part, and readers of 1.0 do not see them.
    for (const name of ['url', 'preferredTransport', 'protocolVersion', 'additionalInterfaces', 'security', 'new']) {
      assert.ok(!(name in outcome.signed), name);
    }
    outside += 1;
  }
  assert.ok(found > 30 && outside > 5, `${found} found, ${outside} outside`);
});

test('missing, unknown, shared-secret and broken signatures are refused [S4-5]', async () => {
  const { privateKey, publicKey } = ec('P-256');
  const signatures = await (await CardSigner.open({ key: pem(privateKey) })).sign(card);
  const keyOf = async () => jwk(publicKey);
  const header = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const good = signatures[0]!;
  const junk = Array.from({ length: SIGNATURES_MAX }, () => ({ ...good, signature: 'AAAA' }));
  const cards: [JsonObject, typeof keyOf | (() => Promise<undefined>)][] = [
    [card, keyOf],
    [{ ...card, signatures: [] }, keyOf],
    [{ ...card, signatures: 'x' }, keyOf],
    [{ ...card, signatures }, async () => jwk(ec('P-256').publicKey)],
    [{ ...card, signatures }, async () => undefined],
    [{ ...card, signatures: [{ ...good, signature: '!' }] }, keyOf],
    [{ ...card, signatures: [{ ...good, protected: '?' }, null, {}] }, keyOf],
    [{ ...card, signatures: [{ ...good, protected: header({ alg: 'none', kid: 'k' }) }] }, keyOf],
    [
      { ...card, signatures: [{ ...good, protected: header({ alg: 'HS256', kid: 'k' }) }] },
      async () => ({ kty: 'oct', k: 'AAAA' }),
    ],
    [{ ...card, signatures: [...junk, good] }, keyOf],
    [{ ...card, name: '\ud800', signatures }, keyOf],
  ];
  for (const [one, find] of cards) await assert.rejects(verifyAgentCard(one, find), refused);
  assert.ok(await verifyAgentCard({ ...card, signatures: [...junk.slice(1), good] }, keyOf));
});

test('a key that cannot sign is refused with an error that does not quote it', async () => {
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const unfit = [
    'PLANTED',
    '{"PLANTED":',
    JSON.stringify({ kty: 'oct', k: 'PLANTED' }),
    JSON.stringify(jwk(ec('P-256').publicKey)),
    pem(small.privateKey),
    pem(ec('secp256k1').privateKey),
    pem(generateKeyPairSync('x25519').privateKey),
  ];
  for (const key of unfit) {
    await assert.rejects(CardSigner.open({ key }), (error: unknown) => {
      assert.ok(error instanceof TypeError && error.cause === undefined);
      assert.doesNotMatch(error.message, /PLANTED/);
      return /^the key of the agent card/.test(error.message);
    });
  }
});

import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { test } from 'node:test';
import { AgentCard, canonicalizeAgentCard, generateAgentCardSignature, verifyAgentCardSignature } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { agentCard, type CardSecurity, resumeExtension } from '@hopline/agent-card';
import { CardSigner } from '@hopline/agent-card/signing';
import { verifyAgentCard } from '@hopline/agent-card/verify';

type Json = Record<string, unknown>;

const bearer = { scheme: 'bearer', bearerFormat: 'JWT' };
const key = { location: 'header', name: 'X-API-Key' };
const security: CardSecurity = {
  securitySchemes: {
    bearer: { type: 'http', ...bearer, httpAuthSecurityScheme: bearer },
    key: { type: 'apiKey', in: 'header', name: 'X-API-Key', apiKeySecurityScheme: key },
  },
  securityRequirements: [{ schemes: { bearer: { list: [] } } }, { schemes: { key: { list: [] } } }],
  security: [{ bearer: [] }, { key: [] }],
};

const cardWith = (more: { security?: CardSecurity; tenants?: string[] }): Json =>
  agentCard({
    name: 'Hopline',
    description: 'Ägents behind “Hopline” 🎯',
    version: '1.2.3',
    url: 'https://h.example/',
    skills: [{ id: 's', name: 'S', description: 'd', tags: ['t'], examples: ['e'] }],
    capabilities: { streaming: true, extensions: [resumeExtension] },
    provider: { organization: 'Acme', url: 'https://acme.example' },
    ...more,
  });

const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }) as string;
const KEYS = [
  generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  generateKeyPairSync('rsa', { modulusLength: 2048 }),
  generateKeyPairSync('ed25519'),
];
const CARDS = [cardWith({}), cardWith({ security })];

/** A card as the SDK's client reads it: fetched, parsed, converted. */
async function asFetched(json: string): Promise<AgentCard> {
  const fetchImpl = async () => new Response(json, { headers: { 'content-type': 'application/json' } });
  return new DefaultAgentCardResolver({ fetchImpl }).resolve('https://h.example/');
}

/** The SDK logs each invalid signature to the console. */
async function quietly<T>(work: () => Promise<T>): Promise<T> {
  const { debug } = console;
  console.debug = () => {};
  return work().finally(() => {
    console.debug = debug;
  });
}

test("the SDK's verifier accepts our signatures with ES256, RS256 and EdDSA [S4-5]", async () => {
  for (const { privateKey, publicKey } of KEYS) {
    const signer = await CardSigner.open({ key: pem(privateKey) });
    const verify = verifyAgentCardSignature(async kid => {
      assert.equal(kid, signer.kid);
      return publicKey;
    });
    for (const card of CARDS) {
      const json = JSON.stringify({ ...card, signatures: await signer.sign(card) });
      const fetched = await asFetched(json);
      await quietly(() => verify(fetched));
      const tampered = [
        json.replace('1.2.3', '1.2.4'),
        json.replace('"streaming":true', '"streaming":false'),
        json.replace('"e"', '"f"'),
      ];
      for (const other of tampered) {
        assert.notEqual(other, json);
        await quietly(() => assert.rejects(async () => verify(await asFetched(other)), /No valid signatures/));
      }
    }
  }
});

test('our verifier detects a change to the 0.3 members of a card, which the SDK does not read [S4-5]', async () => {
  const { privateKey, publicKey } = KEYS[0]!;
  const signer = await CardSigner.open({ key: pem(privateKey) });
  const [card] = CARDS as [Json];
  const changed = { ...card, url: 'https://evil.example/', signatures: await signer.sign(card) };
  await quietly(async () => verifyAgentCardSignature(async () => publicKey)(await asFetched(JSON.stringify(changed))));
  const { signed, whole } = await verifyAgentCard(changed, async () => publicKey.export({ format: 'jwk' }));
  assert.equal(whole, false);
  assert.doesNotMatch(JSON.stringify(signed), /evil/);
});

test('our verifier accepts a card signed by the SDK, and returns the signed members [S4-5]', async () => {
  const { privateKey, publicKey } = KEYS[0]!;
  const sign = generateAgentCardSignature(privateKey, { alg: 'ES256', kid: 'theirs', typ: 'JOSE' });
  for (const card of CARDS) {
    const { signatures } = await sign(card as unknown as AgentCard);
    const verified = await verifyAgentCard({ ...card, signatures }, async () => publicKey.export({ format: 'jwk' }));
    assert.deepEqual([verified.whole, verified.kid], [false, 'theirs']);
    assert.deepEqual(verified.signed, JSON.parse(canonicalizeAgentCard(card as unknown as AgentCard)));
  }
});

test('the SDK reads all 1.0 members of the card [S4-1]', () => {
  const card = AgentCard.fromJSON(CARDS[1]);
  const { securitySchemes, securityRequirements, provider, skills } = card;
  assert.deepEqual(securitySchemes.bearer?.scheme?.$case, 'httpAuthSecurityScheme');
  assert.deepEqual(securitySchemes.key?.scheme?.$case, 'apiKeySecurityScheme');
  assert.deepEqual(
    securityRequirements.map(one => Object.keys(one.schemes)),
    [['bearer'], ['key']],
  );
  assert.deepEqual([provider?.organization, skills[0]?.examples], ['Acme', ['e']]);
  assert.deepEqual(card.capabilities?.extensions[0]?.uri, resumeExtension.uri);
});

test('the SDK sends no tenant to a card with tenants unless its user chooses one [S4-1]', async () => {
  const requests: { params: { tenant?: string } }[] = [];
  const fetchImpl: typeof fetch = async (_url, init) => {
    requests.push(JSON.parse(String(init?.body)));
    return Response.json({ jsonrpc: '2.0', id: 1, error: { code: -32001, message: 'Task not found' } });
  };
  const transports = [new JsonRpcTransportFactory({ fetchImpl })];
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports });
  const card = (tenants: string[]) => cardWith({ tenants }) as unknown as AgentCard;
  for (const tenants of [[], ['a'], ['a', 'b']]) {
    const client = await new ClientFactory(options).createFromAgentCard(card(tenants));
    await assert.rejects(client.getTask({ id: 'x', tenant: '' }), /Task not found/);
    assert.equal(requests.at(-1)?.params.tenant ?? '', '');
  }
});

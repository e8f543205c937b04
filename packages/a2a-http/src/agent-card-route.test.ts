import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { CardSigner } from '@hopline/agent-card/signing';
import { openRig } from './http-server.test-kit.ts';

const PATH = '/.well-known/jwks.json';

test('the keys of a signed card are a typed document, cached like the card, 304 when unchanged', async t => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signer = await CardSigner.open({ key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, keyId: 'k1' });
  const authenticate = () => Promise.reject(new Error('keys are for everybody'));
  const rig = await openRig(t, { signer, authenticate });
  const get = (headers: Record<string, string> = {}, method = 'GET') => fetch(`${rig.url}${PATH}`, { method, headers });
  const response = await get();
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/jwk-set+json']);
  const card = await fetch(`${rig.url}/.well-known/agent-card.json`);
  assert.equal(response.headers.get('cache-control'), card.headers.get('cache-control'));
  const text = await response.text();
  assert.ok(!text.includes(privateKey.export({ format: 'jwk' }).d!));
  const { keys } = JSON.parse(text) as { keys: Record<string, string>[] };
  assert.equal(keys.length, 1);
  assert.deepEqual(Object.keys(keys[0]!).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
  const etag = response.headers.get('etag')!;
  for (const tag of [etag, `W/${etag}`, '*']) {
    const known = await get({ 'if-none-match': tag });
    assert.deepEqual([known.status, known.headers.get('etag'), await known.text()], [304, etag, '']);
  }
  assert.equal((await get({ 'if-none-match': '"other"' })).status, 200);
  const head = await get({}, 'HEAD');
  assert.deepEqual([head.status, head.headers.get('etag'), await head.text()], [200, etag, '']);
});

test('an unsigned card has no keys', async t => {
  const rig = await openRig(t);
  assert.equal((await fetch(`${rig.url}${PATH}`)).status, 404);
});

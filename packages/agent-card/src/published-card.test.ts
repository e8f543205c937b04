import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { agentCard } from './agent-card.ts';
import { CardSigner } from './card-signer.ts';
import { PublishedCard } from './published-card.ts';

const cardNamed = (name: string) =>
  agentCard({ name, description: 'd', version: '1', url: 'http://h/', skills: [], capabilities: {} });

const pem = () =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;

async function signerOf(key = pem(), keyId = 'k') {
  const signer = await CardSigner.open({ key, keyId });
  let count = 0;
  const sign = signer.sign.bind(signer);
  signer.sign = async card => {
    count += 1;
    return sign(card);
  };
  return { signer, signed: () => count };
}

test('the ETag depends only on the content [S3-1]', async () => {
  let name = 'a';
  const one = new PublishedCard(() => cardNamed(name));
  const other = new PublishedCard(() => cardNamed(name));
  const before = await one.current();
  assert.deepEqual(JSON.parse(before.json), cardNamed('a'));
  assert.match(before.etag, /^"[0-9a-f]{32}"$/);
  assert.equal((await other.current()).etag, before.etag);
  assert.equal(await one.current(), before);
  name = 'b';
  assert.notEqual((await one.current()).etag, before.etag);
});

test('a card is signed once per content, not per request; replicas agree on a weak ETag [S4-5]', async () => {
  const key = pem();
  const { signer, signed } = await signerOf(key);
  let name = 'a';
  const published = new PublishedCard(() => cardNamed(name), signer);
  const documents = await Promise.all(Array.from({ length: 50 }, () => published.current()));
  assert.equal(signed(), 1);
  assert.equal(new Set(documents.map(one => one.json)).size, 1);
  assert.match(documents[0]!.etag, /^W\/"/);
  const replica = await new PublishedCard(() => cardNamed(name), signer).current();
  assert.notEqual(replica.json, documents[0]!.json);
  assert.equal(replica.etag, documents[0]!.etag);
  name = 'b';
  await published.current();
  assert.equal(signed(), 3);
  for (const { signer: other } of [await signerOf(), await signerOf(key, 'renamed')]) {
    assert.notEqual((await new PublishedCard(() => cardNamed('a'), other).current()).etag, replica.etag);
  }
});

test('a signed card has a key set with a tag that replicas agree on; an unsigned one has none', async () => {
  const key = pem();
  const { signer } = await signerOf(key);
  const { keys } = new PublishedCard(() => cardNamed('a'), signer);
  assert.deepEqual(JSON.parse(keys!.json), { keys: [signer.publicKey] });
  assert.match(keys!.etag, /^"[0-9a-f]{32}"$/);
  const replica = new PublishedCard(() => cardNamed('b'), (await signerOf(key)).signer);
  assert.deepEqual(replica.keys, keys);
  for (const { signer: other } of [await signerOf(), await signerOf(key, 'renamed')])
    assert.notEqual(new PublishedCard(() => cardNamed('a'), other).keys?.etag, keys?.etag);
  assert.equal(new PublishedCard(() => cardNamed('a')).keys, undefined);
});

test('the next request retries a failed signature', async () => {
  const { signer } = await signerOf();
  const sign = signer.sign;
  signer.sign = () => Promise.reject(new Error('no entropy'));
  const published = new PublishedCard(() => cardNamed('a'), signer);
  await assert.rejects(published.current(), /no entropy/);
  signer.sign = sign;
  assert.ok((await published.current()).card.signatures);
});

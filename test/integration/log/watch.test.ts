import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { startNats } from '../../support/nats/nats-server.ts';

/** More keys than fit into the pulls after which a watch is ready under constant writes. */
const KEYS = 6_000;
/** `$JS.ACK.….<stream sequence>.<consumer sequence>.<nanoseconds>.<pending>`, on newer servers with a random token at the end. */
const PENDING = /(\$JS\.ACK\.\S+\.\d{19})\.\d+/;

// In one of 1,000 to 10,000 starts of a consumer, nats-server miscounts a key that is overwritten at that time.
test('a watch is ready only after every key that existed, whatever the server counts as pending', {
  timeout: 120_000,
}, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  t.after(() => proxy.close());
  proxy.rewrite = line => line.replace(PENDING, '$1.0');
  const log = await openJetStreamLog({ servers: proxy.url, name: 'watch' });
  t.after(() => log.close());
  const keys = Array.from({ length: KEYS }, (_, index) => `key-${index}`);
  await Promise.all(keys.map(key => log.messageIds.put(key, { taskId: key, fingerprint: 'f' })));
  const yielded = new Set<string>();
  for await (const change of log.messageIds.watch(new AbortController().signal)) {
    if (change.type === 'ready') break;
    yielded.add(change.key);
  }
  assert.equal(yielded.size, KEYS);
});

test('a key that is removed while a watch reads the bucket is yielded as removed', { timeout: 120_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const log = await openJetStreamLog({ servers: nats.url, name: 'watch' });
  t.after(() => log.close());
  for (const key of ['a', 'b']) await log.messageIds.put(key, { taskId: key, fingerprint: 'f' });
  const seen: string[] = [];
  for await (const change of log.messageIds.watch(new AbortController().signal)) {
    if (change.type === 'ready') continue;
    seen.push(`${change.key} ${change.value === undefined ? 'removed' : 'stored'}`);
    if (seen.length === 1) await log.messageIds.delete('a');
    if (seen.length === 3) break;
  }
  assert.deepEqual(seen, ['a stored', 'b stored', 'a removed']);
});

test('a watch of a bucket whose newest entry was removed from the stream is ready', { timeout: 120_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const log = await openJetStreamLog({ servers: nats.url, name: 'watch' });
  t.after(() => log.close());
  for (const key of ['a', 'b']) await log.messageIds.put(key, { taskId: key, fingerprint: 'f' });
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  await (await jetstreamManager(nc)).streams.purge('KV_hopline_message_ids', { filter: '$KV.hopline_message_ids.b' });
  const changes = [];
  for await (const change of log.messageIds.watch(new AbortController().signal)) {
    if (change.type === 'ready') break;
    changes.push(change.key);
  }
  assert.deepEqual(changes, ['a']);
});

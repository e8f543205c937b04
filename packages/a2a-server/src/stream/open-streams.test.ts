import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openServer } from '../server.test-kit.ts';

test('releasing a slot twice frees one slot', t => {
  const { streams } = openServer(t, { limits: { streamsMax: 2, ownerStreamsMax: 2 } }).server;
  const [first] = [streams.acquire({}, 'stream'), streams.acquire({}, 'stream')];
  first!();
  first!();
  streams.acquire({}, 'stream');
  assert.throws(() => streams.acquire({}, 'stream'), /too many open streams/);
  assert.equal(streams.count, 2);
});

test('a refused slot names the reason: all slots are taken, or the server shuts down', t => {
  const { streams, limits } = openServer(t, { limits: { streamsMax: 2, ownerStreamsMax: 2 } }).server;
  const releases = Array.from({ length: limits.streamsMax }, () => streams.acquire({}, 'stream'));
  assert.throws(() => streams.acquire({}, 'stream'), /too many open streams/);
  for (const release of releases) release();
  streams.acquire({}, 'stream')();
  streams.drain();
  assert.throws(() => streams.acquire({}, 'stream'), /shutting down/);
});

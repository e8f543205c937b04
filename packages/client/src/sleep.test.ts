import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { sleep } from './sleep.ts';

test('a wait leaves no listener behind, and rejects with the reason of an abort', async () => {
  const stop = new AbortController();
  await sleep(1, stop.signal);
  assert.deepEqual(getEventListeners(stop.signal, 'abort'), []);
  const waiting = assert.rejects(sleep(60_000, stop.signal), /closed/);
  stop.abort(new Error('closed'));
  await waiting;
  await assert.rejects(sleep(60_000, stop.signal), /closed/);
  assert.deepEqual(getEventListeners(stop.signal, 'abort'), []);
});

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { openPage } from './page.test-kit.ts';
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

test('a wait ends when the network returns to the page, if its caller wishes so, and leaves no listener behind', async t => {
  const page = openPage(t);
  const reported: string[] = [];
  const waiting = sleep(60_000, undefined, () => reported.push('online'));
  const other = sleep(20);
  page.dispatchEvent(new Event('online'));
  await waiting;
  assert.deepEqual([reported, getEventListeners(page, 'online')], [['online'], []]);
  await other;
  const stop = new AbortController();
  const left = assert.rejects(
    sleep(60_000, stop.signal, () => {}),
    /left/,
  );
  stop.abort(new Error('left'));
  await left;
  await sleep(1, undefined, () => {});
  assert.deepEqual(getEventListeners(page, 'online'), []);
});

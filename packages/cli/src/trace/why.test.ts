import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EventExplanation } from '@hopline/task-audit';
import { whyLines } from '@hopline/task-audit/why-lines';
import { timeOfDay } from '@hopline/telemetry/log-line';
import { runWith } from '../run-with.test-kit.ts';
import { STARTED_AT } from './trace-report.test-kit.ts';

/** The release reasons of packages/coalesce. */
const REASONS = ['each', 'first', 'ready', 'quiet', 'delay', 'age', 'size', 'boundary', 'close'];

const EXPLANATION: EventExplanation = {
  taskId: 't',
  cursor: '17.42',
  startedAt: STARTED_AT,
  generation: 17,
  seq: 42,
  atMs: 430,
  storedMs: 433,
  kind: 'artifact',
  name: 'response',
  characters: 12,
  append: true,
  last: false,
  relay: 'relay-2-bbbbbbbb',
  takeover: { atMs: 400, cause: 'lost' },
  producer: { id: 'call-1-1', agent: 'argocd', turn: 1, attempt: 2 },
  chunk: {
    tokens: 2,
    reason: 'age',
    firstSeq: 5,
    lastSeq: 6,
    firstMs: 400,
    lastMs: 410,
    publishMs: 4,
    heldMs: 25,
    waitMs: 1,
    appendMs: 3,
    ageMs: 30,
  },
  inputs: [{ seq: 5, writer: 'agent.argocd', kinds: ['open', 'text'], tokens: 1, atMs: 400, storedMs: 402 }],
  inputCount: 2,
  storedWith: [18],
  path: [
    { hop: 'accept', fromMs: 0, toMs: 12 },
    { hop: 'agent', fromMs: 12, toMs: 300, agent: 'argocd' },
    { hop: 'tool', fromMs: 300, toMs: 400, agent: 'argocd', name: 'look_up' },
    { hop: 'hold', fromMs: 400, toMs: 433 },
  ],
};

test('an event is explained in the order of time: producer, inputs, hops, storage, relay', () => {
  const text = whyLines(EXPLANATION, timeOfDay)
    .join('\n')
    .replaceAll(/\d\d:\d\d:00\.(\d{3})/g, '$1');
  assert.equal(
    text,
    `event 17 of task t, cursor 17.42: artifact response, 12 characters, appended
  producer argocd (call-1-1), turn 1, attempt 2
  made of 2 records of inputs:
    5 of agent.argocd: open, text, 1 token; created 400 (0.400 s), stored after 2 ms
    and 1 more
  2 tokens, the first created 400 (0.400 s), the last 410 (0.410 s)
  publish 4 ms: until the relay had read its oldest token
  hold 25 ms: released because its oldest token had been held as long as allowed (age)
  wait_for_append 1 ms: the previous append was in flight
  append 3 ms
  its oldest token was 30 ms old when the append began
  append began 430 (0.430 s)
  stored 433 (0.433 s), after 3 ms, as record 42 of the log
  folded by relay relay-2-bbbbbbbb, which had taken the task over at 400 (0.400 s): the relay before it died
  in one record with event 18
  433 ms after the question of its turn: accept 12 ms, agent argocd 288 ms, tool argocd look_up 100 ms, hold 33 ms
  what follows is not recorded: splice, socket, webhook`,
  );
});

test('every reason of the coalescer is explained; one of a later version is named', () => {
  const held = (reason: string) =>
    whyLines({ ...EXPLANATION, chunk: { ...EXPLANATION.chunk!, reason } }, timeOfDay).find(line => line.startsWith('  hold'));
  for (const reason of REASONS) assert.match(held(reason) ?? '', new RegExp(`because .{10,} \\(${reason}\\)$`));
  assert.match(held('later') ?? '', /because of later$/);
});

test('an invalid cursor is a usage error', async () => {
  for (const cursor of ['17', '17.', 'x.1', '1.1.1']) {
    const { code, err } = await runWith('/nowhere', ['why', 't', cursor]);
    assert.equal(code, 2);
    assert.match(err, /a cursor has the form 17\.42/);
  }
});

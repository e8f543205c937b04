import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TextRun } from '@hopline/task';
import { AppendQueue } from './append-queue.ts';

const run = (seq: number, text: string, heldMs: number): TextRun => ({
  kind: 'run',
  from: { id: 'agent', agent: 'echo', turn: 1, attempt: 1 },
  lane: 'a',
  text,
  last: false,
  n: seq,
  chunk: { firstSeq: seq, lastSeq: seq, count: 1, n: seq, reason: 'window', heldMs, firstAt: seq, lastAt: seq },
});

test('runs that are merged in the queue keep the provenance of the oldest and the newest token', () => {
  const queue = new AppendQueue(() => 0);
  for (const [seq, text, heldMs] of [
    [3, 'a', 9],
    [4, 'b', 2],
    [5, 'c', 4],
  ] as const)
    queue.pushRun(run(seq, text, heldMs), 1_000);
  const [queued, ...others] = queue.take(1_000);
  assert.deepEqual(others, []);
  assert.equal(queued?.firstSeq, 3);
  assert.ok(queued?.command.kind === 'run');
  assert.equal(queued.command.text, 'abc');
  assert.deepEqual(queued.command.chunk, {
    firstSeq: 3,
    lastSeq: 5,
    count: 3,
    n: 5,
    reason: 'window',
    heldMs: 9,
    firstAt: 3,
    lastAt: 5,
  });
});

test('the oldest sequence is that of the oldest queued command, in whatever order commands came and were taken', () => {
  const operations: ((queue: AppendQueue) => unknown)[] = [
    ...[1, 2, 3].map(seq => (queue: AppendQueue) => queue.push({ kind: 'unreadable' }, seq)),
    ...[1, 2, 3].map(seq => (queue: AppendQueue) => queue.pushRun(run(seq, 'a', 0), 1_000)),
    queue => queue.closeWithRun(run(1, '', 0).from, 'a', undefined),
    queue => queue.take(1),
    queue => queue.take(1_100),
  ];
  const length = 5;
  for (let number = 0; number < operations.length ** length; number += 1) {
    const queue = new AppendQueue(() => 0);
    const seqs: number[] = [];
    for (let rest = number, step = 0; step < length; step += 1, rest = Math.floor(rest / operations.length)) {
      const before = queue.length;
      operations[rest % operations.length]!(queue);
      // The first six operations push the sequences 1, 2, 3, 1, 2, 3; a run may join the newest command instead.
      if (queue.length > before) seqs.push(((rest % operations.length) % 3) + 1);
      else seqs.splice(0, before - queue.length);
      assert.equal(queue.oldestSeq, seqs.length === 0 ? undefined : Math.min(...seqs), `sequence ${number}, step ${step}`);
    }
  }
});

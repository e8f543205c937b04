import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TextRun } from '@hopline/task';
import { AppendQueue } from './append-queue.ts';

const run = (seq: number, text: string, heldMs = 0): TextRun => ({
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
    queue.pushRun(run(seq, text, heldMs));
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

test('the oldest sequence belongs to the oldest queued command, in whatever order commands are added and taken', () => {
  const operations: ((queue: AppendQueue) => unknown)[] = [
    ...[1, 2, 3].map(seq => (queue: AppendQueue) => queue.push({ kind: 'unreadable' }, seq)),
    ...[1, 2, 3].map(seq => (queue: AppendQueue) => queue.pushRun(run(seq, 'a', 0))),
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
      // The operations push the sequences 1, 2, 3, 1, 2, 3, except for runs that join the newest command.
      if (queue.length > before) seqs.push(((rest % operations.length) % 3) + 1);
      else seqs.splice(0, before - queue.length);
      assert.equal(queue.oldestSeq, seqs.length === 0 ? undefined : Math.min(...seqs), `sequence ${number}, step ${step}`);
    }
  }
});

const textsOf = (queue: AppendQueue) =>
  queue.take(Number.POSITIVE_INFINITY).map(({ command }) => (command.kind === 'run' ? command.text : command.kind));

test('runs of one lane are merged up to the bound; closed runs, and runs of different lanes, attempts or turns, are not', () => {
  const merged = (unitsMax: number, ...runs: TextRun[]) => {
    const queue = new AppendQueue(() => 0, unitsMax);
    for (const one of runs) queue.pushRun(one);
    return textsOf(queue);
  };
  const [first, second] = [run(1, 'abc'), run(2, 'de')];
  assert.deepEqual(merged(5, first, second), ['abcde']);
  assert.deepEqual(merged(4, first, second), ['abc', 'de']);
  assert.deepEqual(merged(5, first, { ...second, lane: 'b' }), ['abc', 'de']);
  assert.deepEqual(merged(5, first, { ...second, from: { ...second.from, attempt: 2 } }), ['abc', 'de']);
  assert.deepEqual(merged(5, first, { ...second, from: { ...second.from, turn: 2 } }), ['abc', 'de']);
  assert.deepEqual(merged(5, { ...first, last: true }, second), ['abc', 'de']);
  const each = { ...second, chunk: { ...second.chunk, reason: 'each' } };
  assert.deepEqual(merged(5, first, each), ['abc', 'de'], 'in pass-through each token is a frame of its own');
});

test('the newest queued run closes a lane, unless another command or a mark follows it', () => {
  const { from } = run(1, '');
  const mark = { from, n: 9 };
  const queue = new AppendQueue(() => 0);
  assert.equal(queue.closeWithRun(from, 'a', mark), false);
  queue.pushRun(run(1, 'one'));
  queue.pushRun({ ...run(2, 'other'), lane: 'b' });
  for (const other of [
    { ...from, attempt: 2 },
    { ...from, turn: 2 },
    { ...from, id: 'call-1-1' },
  ])
    assert.equal(queue.closeWithRun(other, 'a', mark), false);
  assert.equal(queue.closeWithRun(from, 'a', mark), true);
  assert.equal(queue.closeWithRun(from, 'b', { from, n: 10 }), false, 'the mark of what came before must stay');
  const taken = queue.take(Number.POSITIVE_INFINITY);
  assert.deepEqual(
    taken.map(({ command, mark: own }) => [command.kind === 'run' && command.last, own]),
    [
      [true, undefined],
      [false, mark],
    ],
  );
  queue.pushRun(run(3, 'two'));
  queue.push({ kind: 'unreadable' }, 4);
  assert.equal(queue.closeWithRun(from, 'a', mark), false);
});

test('a batch has at least one command and at most the limit; a copy-forward is a separate batch', () => {
  const copyForward = { kind: 'copy-forward', startStoredAt: 1 } as const;
  const filled = () => {
    const queue = new AppendQueue(() => 0, 0);
    queue.pushRun(run(1, 'a'.repeat(100)));
    queue.pushRun(run(2, 'b'.repeat(100)));
    queue.push(copyForward, 3);
    queue.pushRun(run(4, 'c'));
    return queue;
  };
  const batches = (unitsMax: number) => {
    const queue = filled();
    const counts: number[] = [];
    while (queue.length > 0) counts.push(queue.take(unitsMax).length);
    assert.equal(queue.size, 0);
    return counts;
  };
  const both = 2 * (filled().take(1)[0]?.size ?? 0);
  assert.deepEqual(batches(both), [2, 1, 1]);
  assert.deepEqual(batches(both - 1), [1, 1, 1, 1]);
  assert.deepEqual(batches(0), [1, 1, 1, 1]);
});

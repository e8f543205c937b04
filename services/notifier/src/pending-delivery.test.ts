import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fold, type StreamResponse, type TaskArtifactUpdateEvent } from '@hopline/a2a';
import fc from 'fast-check';
import { MERGED_BYTES_MAX, mergeDeliveries, type PendingDelivery } from './pending-delivery.ts';

const ids = { taskId: 't', contextId: 'c' };

function pending(generation: number, event: StreamResponse, more: Partial<PendingDelivery> = {}): PendingDelivery {
  const bytes = JSON.stringify(event).length;
  return { event, generation, seq: generation * 10, count: 1, at: generation, bytes, terminal: false, ...more };
}

type ChunkOptions = { id?: string; text?: string; append?: boolean; last?: boolean; more?: Partial<TaskArtifactUpdateEvent> };

const chunk = (
  generation: number,
  { id = 'a', text = 'x', append = true, last = false, more = {} }: ChunkOptions = {},
): PendingDelivery =>
  pending(generation, {
    artifactUpdate: { ...ids, artifact: { artifactId: id, name: id, parts: [{ text }] }, append, lastChunk: last, ...more },
  });

const status = (generation: number): PendingDelivery =>
  pending(generation, { statusUpdate: { ...ids, status: { state: 'TASK_STATE_WORKING' } } });

test('chunks of one artifact become one chunk: the first opens or appends, the last one closes', () => {
  const one = mergeDeliveries(
    mergeDeliveries(chunk(2, { text: 'Here', append: false }), chunk(3, { text: ' is' }))!,
    chunk(4, { text: '', last: true }),
  )!;
  assert.deepEqual(one.event, {
    artifactUpdate: {
      ...ids,
      artifact: { artifactId: 'a', name: 'a', parts: [{ text: 'Here is' }] },
      append: false,
      lastChunk: true,
    },
  });
  assert.deepEqual([one.generation, one.seq, one.count, one.at], [4, 40, 3, 2]);
});

test('only appended text of the same open artifact is merged; anything else stays a separate delivery', () => {
  const first = chunk(2);
  const data = { artifact: { artifactId: 'a', name: 'a', parts: [{ data: 1 }] } };
  const flagged = { artifact: { artifactId: 'a', name: 'a', parts: [{ text: 'x', metadata: { k: 1 } }] } };
  for (const [what, second] of Object.entries({
    status: status(3),
    other: chunk(3, { id: 'b' }),
    replacing: chunk(3, { append: false }),
    data: chunk(3, { more: data }),
    flagged: chunk(3, { more: flagged }),
    metadata: chunk(3, { more: { metadata: { from: 'agent' } } }),
  }))
    assert.equal(mergeDeliveries(first, second), undefined, what);
  assert.equal(mergeDeliveries(status(2), chunk(3)), undefined);
  assert.equal(mergeDeliveries(status(2), status(3)), undefined);
  assert.equal(mergeDeliveries(chunk(2, { last: true }), chunk(3)), undefined);
});

test('a merged delivery is bounded', () => {
  const half = (generation: number, bytes: number) => ({ ...chunk(generation), bytes });
  assert.ok(mergeDeliveries(half(2, MERGED_BYTES_MAX / 2), half(3, MERGED_BYTES_MAX / 2)));
  assert.equal(mergeDeliveries(half(2, MERGED_BYTES_MAX / 2), half(3, MERGED_BYTES_MAX / 2 + 1)), undefined);
});

test('a whole task may cover several artifact events, but never hides a status', () => {
  const task = (text: string) => ({
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_WORKING' as const },
    artifacts: [{ artifactId: text, parts: [] }],
  });
  const second = { ...chunk(3, { id: 'b', append: false }), task: task('second') };
  const both = mergeDeliveries({ ...chunk(2), task: task('first') }, second);
  assert.deepEqual([both?.task, both?.generation, both?.count], [task('second'), 3, 2]);
  assert.equal(mergeDeliveries({ ...chunk(2), task: task('first') }, { ...status(3), task: task('second') }), undefined);
  assert.equal(mergeDeliveries({ ...status(2), task: task('first') }, second), undefined);
});

test('promise 1: any merged stream folds to the same text without a violation', () => {
  const step = fc.record({
    lane: fc.constantFrom('a', 'b'),
    text: fc.string({ unit: 'grapheme', maxLength: 4 }),
    event: fc.constantFrom('text', 'text', 'text', 'status', 'replace'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }), (steps, waits) => {
      const opened = new Set<string>();
      const events = steps.map(({ lane, text, event }, index) => {
        if (event === 'status') return status(index + 2);
        const append = opened.has(lane) && event === 'text';
        opened.add(lane);
        return chunk(index + 2, { id: lane, text, append });
      });
      const sent: PendingDelivery[] = [];
      for (const [index, event] of events.entries()) {
        const last = sent.at(-1);
        const both = waits[index] && last !== undefined ? mergeDeliveries(last, event) : undefined;
        if (both === undefined) sent.push(event);
        else sent[sent.length - 1] = both;
      }
      const [plain, shown] = [new Fold(), new Fold()];
      for (const one of events) plain.add(one.event);
      for (const one of sent) shown.add(one.event);
      assert.deepEqual(
        shown.violations.map(({ rule }) => rule),
        plain.violations.map(({ rule }) => rule),
      );
      for (const lane of ['a', 'b']) assert.equal(shown.textOf(lane), plain.textOf(lane));
      assert.equal(
        sent.reduce((sum, { count }) => sum + count, 0),
        events.length,
      );
    }),
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DIALECTS } from './dialects.ts';
import { Fold, foldEvents, type ViolationRule } from './fold.ts';
import type { Part, StreamResponse, TaskState } from './types.ts';

const ids = { taskId: 't', contextId: 'c' };
const task: StreamResponse = { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } } };
const state = (value: TaskState): StreamResponse => ({ statusUpdate: { ...ids, status: { state: value } } });
const end = state('TASK_STATE_COMPLETED');

function chunk(
  artifactId: string,
  parts: Part[] | string,
  flags: { append?: boolean; lastChunk?: boolean; name?: string } = {},
): StreamResponse {
  const { name, ...rest } = flags;
  const list = typeof parts === 'string' ? [{ text: parts }] : parts;
  return { artifactUpdate: { ...ids, artifact: { artifactId, ...(name !== undefined && { name }), parts: list }, ...rest } };
}

test('append:false creates, append:true concatenates with no separator [S0-30]', () => {
  const fold = foldEvents([task, chunk('a', 'H'), chunk('a', 'ere', { append: true }), chunk('a', ' is', { append: true }), end]);
  assert.equal(fold.artifacts.get('a')?.text, 'Here is');
  assert.deepEqual(fold.artifacts.get('a')?.parts, [{ text: 'Here is' }]);
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.ended, true);
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
});

test('any text, split anywhere into interleaved artifacts, folds back to itself in both dialects [S0-30 S0-47]', () => {
  const run = fc.array(fc.record({ id: fc.constantFrom('a', 'b', 'c'), text: fc.string({ unit: 'binary' }) }), { maxLength: 30 });
  fc.assert(
    fc.property(run, fc.constantFrom(DIALECTS['1.0'], DIALECTS['0.3']), (chunks, dialect) => {
      const seen = new Set<string>();
      const events = chunks.map(({ id, text }) => {
        const append = seen.has(id);
        seen.add(id);
        return chunk(id, text, { append });
      });
      const wire = [task, ...events, end].map(event => JSON.stringify(dialect.encodeEvent(event)));
      const fold = new Fold();
      for (const line of wire) {
        const decoded = dialect.decodeEvent(JSON.parse(line));
        assert('event' in decoded);
        fold.add(decoded.event);
      }
      for (const id of seen) {
        const expected = chunks.filter(one => one.id === id).map(one => one.text);
        assert.equal(fold.artifacts.get(id)?.text, expected.join(''));
      }
      assert.deepEqual(fold.violations, []);
    }),
  );
});

test('append:false replaces, all parts count, and a file does not end the text [S2-21 S2-28]', () => {
  const file = { raw: 'aGk=' };
  const fold = foldEvents([
    task,
    chunk('a', 'dead attempt'),
    chunk('a', [{ text: 'one ' }, { text: 'two' }]),
    chunk('a', [file, { text: ' three' }], { append: true, lastChunk: true }),
  ]);
  assert.equal(fold.artifacts.get('a')?.text, 'one two three');
  assert.deepEqual(fold.artifacts.get('a')?.parts, [{ text: 'one ' }, { text: 'two' }, file, { text: ' three' }]);
  assert.equal(fold.artifacts.get('a')?.closed, true);
});

test('every violation is detected, without reporting another one', () => {
  const other: StreamResponse = { statusUpdate: { taskId: 'x', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } };
  const cases: [ViolationRule[], StreamResponse[]][] = [
    [['first-event'], [state('TASK_STATE_WORKING'), end]],
    [['second-task'], [task, task, end]],
    [['unopened-append'], [task, chunk('a', 'x', { append: true }), end]],
    [['chunk-after-last'], [task, chunk('a', 'x', { lastChunk: true }), chunk('a', 'y', { append: true }), end]],
    [['after-terminal'], [task, end, chunk('a', 'x')]],
    [
      ['after-terminal', 'second-terminal'],
      [task, end, state('TASK_STATE_FAILED')],
    ],
    [['other-id'], [task, other]],
    [['renamed-artifact'], [task, chunk('a', 'x', { name: 'n' }), chunk('a', 'y', { name: 'm', append: true })]],
    [
      [],
      [
        task,
        state('TASK_STATE_INPUT_REQUIRED'),
        state('TASK_STATE_WORKING'),
        chunk('a', ''),
        chunk('b', '', { lastChunk: true }),
        end,
      ],
    ],
  ];
  for (const [rules, events] of cases)
    assert.deepEqual(
      foldEvents(events).violations.map(one => one.rule),
      rules,
    );
});

test('the fold of an interrupted stream continues, from a cursor and from a snapshot [S3-31]', () => {
  const first = [task, chunk('a', 'one ', { name: 'n' })];
  const rest = [chunk('a', 'two', { append: true, name: 'n' }), end];
  const byCursor = foldEvents(first).resume();
  for (const event of rest) byCursor.add(event);
  const snapshot: StreamResponse = {
    task: {
      id: 't',
      contextId: 'c',
      status: { state: 'TASK_STATE_WORKING' },
      artifacts: [{ artifactId: 'a', name: 'n', parts: [{ text: 'one ' }] }],
    },
  };
  const bySnapshot = foldEvents(first).resume();
  for (const event of [snapshot, ...rest]) bySnapshot.add(event);
  for (const fold of [byCursor, bySnapshot]) {
    assert.deepEqual(fold.violations, []);
    assert.equal(fold.textOf('n'), 'one two');
  }
  assert.deepEqual(snapshot.task.artifacts?.[0]?.parts, [{ text: 'one ' }]);
});

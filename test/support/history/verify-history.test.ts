import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TaskState } from '@hopline/a2a';
import fc from 'fast-check';
import type { History, Operation, Shown } from './history.ts';
import { type HistoryContext, verifyHistory } from './verify-history.ts';

const WORKING = 'TASK_STATE_WORKING';
const COMPLETED = 'TASK_STATE_COMPLETED';
const CANCELED = 'TASK_STATE_CANCELED';

const CLEAN = { finalStates: new Map<string, TaskState>([['t', COMPLETED]]) };

function rulesOf(history: History, context: HistoryContext = CLEAN): string[] {
  const rules: string[] = [];
  verifyHistory(history, context, rule => rules.push(rule));
  return rules;
}

type At = { begunAt: number; endedAt: number; client?: string; replica?: string; caller?: string };

const request = ({ client = 'one', replica = 'a', caller = 'anna', begunAt, endedAt }: At) => ({
  client,
  replica,
  caller,
  begunAt,
  endedAt,
});

function shown(generation: number, state: TaskState = WORKING, messageIds: readonly string[] = ['m1']): Shown {
  return { taskId: 't', state, generation: { from: generation, to: generation }, messageIds };
}

function send(
  at: At,
  generation: number,
  more: { messageId?: string; taskId?: string; beginsWithEvent?: boolean } = {},
): Operation<Shown> {
  const { messageId = 'm1', taskId, beginsWithEvent = false } = more;
  const result = { task: shown(generation) };
  return { ...request(at), kind: 'send', messageId, contextId: 'c', taskId, result, beginsWithEvent };
}

const read = (at: At, generation: number, state?: TaskState, messageIds?: readonly string[]): Operation<Shown> => ({
  ...request(at),
  kind: 'read',
  taskId: 't',
  result: { task: shown(generation, state, messageIds) },
});

const missed = (at: At): Operation<Shown> => ({ ...request(at), kind: 'read', taskId: 't', result: 'not found' });

function list(at: At, tasks: readonly Shown[], contextId?: string): Operation<Shown> {
  const page = { begunAt: at.begunAt, endedAt: at.endedAt };
  return { ...request(at), kind: 'list', contextId, pages: 1, tasks: tasks.map(task => ({ task, ...page })) };
}

type Stream = Extract<Operation<Shown>, { kind: 'stream' }>;

const frame = (at: number, generation: number, more: Partial<Stream['frames'][number]> = {}) => ({
  at,
  generation,
  state: undefined,
  isSnapshot: false,
  ...more,
});

const stream = (at: At, frames: Stream['frames'], more: Partial<Pick<Stream, 'after' | 'refusal'>> = {}): Operation<Shown> => ({
  ...request(at),
  kind: 'stream',
  taskId: 't',
  after: undefined,
  refusal: undefined,
  ...more,
  frames,
});

const cancel = (at: At, result: Extract<Operation<Shown>, { kind: 'cancel' }>['result']): Operation<Shown> => ({
  ...request(at),
  kind: 'cancel',
  taskId: 't',
  result,
});

const BEGUN = send({ begunAt: 0, endedAt: 10 }, 1);

test('a history without violations passes', () => {
  const history = [
    BEGUN,
    stream({ begunAt: 0, endedAt: 60 }, [frame(10, 1), frame(20, 2, { state: WORKING }), frame(60, 5, { state: COMPLETED })]),
    read({ begunAt: 25, endedAt: 30, client: 'two', replica: 'b' }, 2),
    list({ begunAt: 31, endedAt: 35, replica: 'b' }, [shown(3)]),
    stream({ begunAt: 40, endedAt: 61, client: 'two' }, [frame(45, 3, { isSnapshot: true, state: WORKING }), frame(50, 4)]),
    cancel({ begunAt: 70, endedAt: 71 }, 'ended'),
    read({ begunAt: 72, endedAt: 73 }, 5, COMPLETED),
    stream({ begunAt: 74, endedAt: 75 }, [], { refusal: 'ended' }),
  ];
  assert.deepEqual(rulesOf(history), []);
});

test('either of two concurrent requests may show more', () => {
  assert.deepEqual(rulesOf([BEGUN, read({ begunAt: 20, endedAt: 30 }, 7), read({ begunAt: 29, endedAt: 40 }, 2)]), []);
});

test('a read that shows less than an earlier one of the same client is found', () => {
  const history = [
    BEGUN,
    read({ begunAt: 20, endedAt: 30, replica: 'a' }, 7),
    read({ begunAt: 31, endedAt: 40, replica: 'b' }, 6),
  ];
  assert.deepEqual(rulesOf(history), ['a generation never steps back for one client']);
});

test('a read that shows less than another client was shown before is found', () => {
  const history = [
    BEGUN,
    read({ begunAt: 20, endedAt: 30, client: 'one' }, 7),
    read({ begunAt: 31, endedAt: 40, client: 'two' }, 6),
  ];
  assert.deepEqual(rulesOf(history), ['a response shows all that an earlier one has shown']);
});

test('a snapshot, a list and the response to a cancel that show less than a stream had are found', () => {
  const live = stream({ begunAt: 11, endedAt: 90 }, [frame(20, 7)]);
  const stale: Operation<Shown>[] = [
    stream({ begunAt: 21, endedAt: 90, client: 'two' }, [frame(25, 6, { isSnapshot: true, state: WORKING })]),
    list({ begunAt: 21, endedAt: 30, client: 'two' }, [shown(6)]),
    cancel({ begunAt: 21, endedAt: 30, client: 'two' }, { task: shown(6) }),
  ];
  for (const one of stale)
    assert.deepEqual(rulesOf([BEGUN, live, one]), ['a response shows all that an earlier one has shown'], one.kind);
});

test('the event with which the stream of a repeated send begins may be older than a list', () => {
  const listed = list({ begunAt: 20, endedAt: 30, client: 'two' }, [shown(7)]);
  const again = (beginsWithEvent: boolean) => send({ begunAt: 31, endedAt: 40 }, 1, { beginsWithEvent });
  assert.deepEqual(rulesOf([BEGUN, listed, again(true)]), []);
  assert.deepEqual(rulesOf([BEGUN, listed, again(false)]), ['a response shows all that an earlier one has shown']);
});

test('each page of a list is judged by its own time', () => {
  const paged = (begunAt: number): Operation<Shown> => ({
    ...request({ begunAt: 11, endedAt: 60 }),
    kind: 'list',
    contextId: undefined,
    pages: 2,
    tasks: [{ task: shown(6), begunAt, endedAt: 60 }],
  });
  const seen = read({ begunAt: 20, endedAt: 30 }, 7);
  assert.deepEqual(rulesOf([BEGUN, seen, paged(25)]), []);
  assert.deepEqual(rulesOf([BEGUN, seen, paged(40)]), ['a generation never steps back for one client']);
});

test('the verifier reports a task that is missing after its send was acknowledged', () => {
  assert.deepEqual(rulesOf([BEGUN, missed({ begunAt: 11, endedAt: 12 })]), ['a read after an acknowledged send finds the task']);
  assert.deepEqual(rulesOf([BEGUN, missed({ begunAt: 9, endedAt: 12 })]), []);
});

test('a stream that does not find a task that a client was shown is found', () => {
  const history = [read({ begunAt: 1, endedAt: 5 }, 1), stream({ begunAt: 6, endedAt: 7 }, [], { refusal: 'not found' })];
  assert.deepEqual(rulesOf(history), ['a read after an acknowledged send finds the task']);
});

test('a read that lacks an acknowledged message is found', () => {
  const answer = send({ begunAt: 20, endedAt: 30 }, 4, { messageId: 'm2', taskId: 't' });
  const lacks = (begunAt: number) => [BEGUN, answer, read({ begunAt, endedAt: 40 }, 4, WORKING, ['m1'])];
  assert.deepEqual(rulesOf(lacks(31)), ['a read after an acknowledged send finds its message']);
  assert.deepEqual(rulesOf(lacks(29)), []);
});

test('a list without a task of its caller, and one with a task of another caller, are found', () => {
  assert.deepEqual(rulesOf([BEGUN, list({ begunAt: 11, endedAt: 12 }, [])]), [
    'a list shows what was acknowledged to its caller',
  ]);
  assert.deepEqual(rulesOf([BEGUN, list({ begunAt: 9, endedAt: 12 }, [])]), []);
  assert.deepEqual(rulesOf([BEGUN, list({ begunAt: 11, endedAt: 12, caller: 'bob' }, [])]), []);
  assert.deepEqual(rulesOf([BEGUN, list({ begunAt: 11, endedAt: 12, caller: 'bob' }, [shown(1)])]), [
    'a list shows the tasks of its caller only',
  ]);
});

test('a list of several pages may miss a task that has not ended', () => {
  const paged = { ...list({ begunAt: 31, endedAt: 40 }, []), pages: 2 } as Operation<Shown>;
  assert.deepEqual(rulesOf([BEGUN, paged]), []);
  const ended = read({ begunAt: 20, endedAt: 30 }, 7, COMPLETED);
  assert.deepEqual(rulesOf([BEGUN, ended, paged]), ['a list shows what was acknowledged to its caller']);
});

test('a list of a context is judged by that context', () => {
  assert.deepEqual(rulesOf([BEGUN, list({ begunAt: 11, endedAt: 12 }, [], 'other')]), []);
  assert.deepEqual(rulesOf([BEGUN, list({ begunAt: 11, endedAt: 12 }, [], 'c')]), [
    'a list shows what was acknowledged to its caller',
  ]);
  assert.deepEqual(rulesOf([BEGUN, list({ begunAt: 11, endedAt: 12 }, [shown(1)], 'other')]), [
    'a list of a context shows no other',
  ]);
});

test('two terminal states of one task, and a state after the end, are found', () => {
  const ended = read({ begunAt: 20, endedAt: 30 }, 7, COMPLETED);
  assert.deepEqual(rulesOf([BEGUN, ended, read({ begunAt: 25, endedAt: 35 }, 7, CANCELED)]), ['a terminal state never changes']);
  assert.deepEqual(rulesOf([BEGUN, ended, read({ begunAt: 31, endedAt: 35 }, 8)]), ['a terminal state never changes']);
  const refused = cancel({ begunAt: 20, endedAt: 30 }, 'ended');
  assert.deepEqual(rulesOf([BEGUN, refused, read({ begunAt: 31, endedAt: 35 }, 8)]), ['a terminal state never changes']);
});

test('a message that an ended task takes is found, and a repetition of one that was sent before the end is not', () => {
  const end = read({ begunAt: 20, endedAt: 30 }, 7, COMPLETED);
  const late = send({ begunAt: 40, endedAt: 50 }, 7, { messageId: 'm2', taskId: 't' });
  const early: Operation<Shown> = {
    ...request({ begunAt: 15, endedAt: Number.POSITIVE_INFINITY }),
    kind: 'send',
    messageId: 'm2',
    contextId: 'c',
    taskId: 't',
    result: undefined,
  };
  const ended = { ...late, result: { task: shown(7, COMPLETED, ['m1', 'm2']) } } as Operation<Shown>;
  assert.deepEqual(rulesOf([BEGUN, end, ended]), ['an ended task takes no message']);
  assert.deepEqual(rulesOf([BEGUN, end, early, ended]), []);
});

test('a message that begins a second task is found', () => {
  const again = {
    ...send({ begunAt: 20, endedAt: 30 }, 1),
    result: { task: { ...shown(1), taskId: 'u' } },
  } as Operation<Shown>;
  assert.deepEqual(rulesOf([BEGUN, again]), ['a message begins one task']);
});

test('a stream that steps back, and one that refuses a received cursor, are found', () => {
  assert.deepEqual(rulesOf([BEGUN, stream({ begunAt: 11, endedAt: 20 }, [frame(12, 3), frame(13, 3)])]), [
    'a generation never steps back for one client',
  ]);
  assert.deepEqual(rulesOf([BEGUN, stream({ begunAt: 11, endedAt: 20 }, [frame(12, 3)], { after: 3 })]), [
    'a generation never steps back for one client',
  ]);
  const snapshot = frame(12, 2, { isSnapshot: true, state: WORKING });
  assert.deepEqual(rulesOf([BEGUN, stream({ begunAt: 11, endedAt: 20 }, [snapshot], { after: 3 })]), [
    'a generation never steps back for one client',
  ]);
  assert.deepEqual(rulesOf([BEGUN, stream({ begunAt: 11, endedAt: 20 }, [], { after: 3, refusal: 'cursor' })]), [
    'every replica takes a cursor that a client has received',
  ]);
});

test('an acknowledged cancel of a task that does not end is found', () => {
  const canceled = cancel({ begunAt: 20, endedAt: 30 }, { task: shown(3) });
  assert.deepEqual(rulesOf([BEGUN, canceled], { finalStates: new Map([['t', WORKING]]) }), [
    'an acknowledged cancel ends its task',
  ]);
  assert.deepEqual(rulesOf([BEGUN, canceled], { finalStates: new Map() }), ['an acknowledged cancel ends its task']);
  assert.deepEqual(rulesOf([BEGUN, canceled], { finalStates: new Map([['t', CANCELED]]) }), []);
  const unanswered = cancel({ begunAt: 20, endedAt: Number.POSITIVE_INFINITY }, undefined);
  assert.deepEqual(rulesOf([BEGUN, unanswered], { finalStates: new Map([['t', WORKING]]) }), []);
});

test('records seen before a loss of acknowledged records are checked apart from those seen after it', () => {
  const history = [
    BEGUN,
    read({ begunAt: 20, endedAt: 30 }, 7),
    read({ begunAt: 51, endedAt: 60 }, 2),
    missed({ begunAt: 51, endedAt: 60 }),
    list({ begunAt: 51, endedAt: 60 }, []),
  ];
  assert.deepEqual(rulesOf(history, { ...CLEAN, losses: [{ startedAt: 40, endedAt: 50 }] }), []);
  const later = [...history, read({ begunAt: 70, endedAt: 80 }, 9), read({ begunAt: 81, endedAt: 90 }, 8)];
  assert.deepEqual(rulesOf(later, { ...CLEAN, losses: [{ startedAt: 40, endedAt: 50 }] }), [
    'a generation never steps back for one client',
  ]);
});

/**
 * A register that counts, read at a moment within each request. Whatever the times are, reads of it are linearizable, except a read whose
 * value is below one that was returned before its request.
 */
test('every history of one growing task passes, and one stale read in it is found', () => {
  const requestOf = fc.record({
    client: fc.constantFrom('one', 'two', 'three'),
    replica: fc.constantFrom('a', 'b'),
    begunAt: fc.integer({ min: 20, max: 1_000 }),
    readAfter: fc.integer({ min: 0, max: 40 }),
    answeredAfter: fc.integer({ min: 0, max: 40 }),
  });
  const generationAt = (at: number) => 1 + Math.floor(at / 10);
  fc.assert(
    fc.property(fc.array(requestOf, { minLength: 1, maxLength: 30 }), requests => {
      const reads = requests.map(({ readAfter, answeredAfter, ...one }) => {
        const readAt = one.begunAt + readAfter;
        return read({ ...one, endedAt: readAt + answeredAfter }, generationAt(readAt));
      });
      const history = [BEGUN, ...reads];
      assert.deepEqual(rulesOf(history), []);
      const endedAt = Math.max(...reads.map(one => one.endedAt));
      const newest = Math.max(...requests.map(({ begunAt, readAfter }) => generationAt(begunAt + readAfter)));
      const stale = read({ begunAt: endedAt + 1, endedAt: endedAt + 2, client: 'four' }, newest - 1);
      assert.deepEqual(rulesOf([...history, stale]), ['a response shows all that an earlier one has shown']);
    }),
    { numRuns: 200, seed: 1 },
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTerminal } from '@hopline/a2a';
import { type ArtifactUpdated, type Fact, isVisible, type LaneState, type TaskAggregate } from '@hopline/events';
import fc from 'fast-check';
import { evolve, onlyContinuesText } from './evolve.ts';
import { agent, Scenario, supervisor } from './scenario.test-kit.ts';

const lane = fc.constantFrom('a', 'b', 'plan');
const producer = fc.oneof(
  fc
    .record({ attempt: fc.integer({ min: 1, max: 3 }), turn: fc.integer({ min: 1, max: 2 }) })
    .map(({ attempt, turn }) => agent('call-1-1', attempt, turn)),
  fc.integer({ min: 1, max: 2 }).map(attempt => supervisor(attempt)),
);
const step = fc.oneof(
  fc.tuple(producer, lane).map(
    ([from, name]) =>
      (story: Scenario) =>
        story.open(from, name),
  ),
  fc.tuple(producer, lane, fc.string(), fc.boolean()).map(
    ([from, name, text, last]) =>
      (story: Scenario) =>
        story.text(from, name, text, last),
  ),
  fc.tuple(producer, lane).map(
    ([from, name]) =>
      (story: Scenario) =>
        story.input(from, { kind: 'close', lane: name }),
  ),
  fc.tuple(producer, lane, fc.boolean(), fc.boolean()).map(
    ([from, name, append, last]) =>
      (story: Scenario) =>
        story.input(from, { kind: 'artifact', lane: name, artifact: {}, parts: [{ text: 'x' }], append, last }),
  ),
  fc
    .tuple(
      producer,
      fc.constantFrom('TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_COMPLETED', 'TASK_STATE_FAILED'),
    )
    .map(
      ([from, state]) =>
        (story: Scenario) =>
          story.input(from, { kind: 'status', state: state as 'TASK_STATE_WORKING' }),
    ),
  fc.constant((story: Scenario) => story.input(agent(), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' })),
  fc.integer({ min: 1, max: 4 }).map(id => (story: Scenario) => story.message('more', `m${id}`)),
  fc.constant((story: Scenario) => story.cancel()),
);

function run(steps: ((story: Scenario) => Scenario)[]): Scenario {
  const story = new Scenario().message('hello').input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  for (const next of steps) next(story);
  return story;
}

test('for any inputs: generations are 1..n, the terminal event is last, appends follow an open chunk, each artifact closes once', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), steps => {
      const story = run(steps);
      const events = story.facts.filter(isVisible);
      assert.deepEqual(
        events.map(fact => fact.generation),
        events.map((_fact, index) => index + 1),
      );
      const terminal = events.findIndex(
        fact => fact.kind === 'status.changed' && isTerminal(fact.event.statusUpdate.status.state),
      );
      if (terminal >= 0) assert.equal(terminal, events.length - 1);
      const open = new Map<string, boolean>();
      for (const fact of events) {
        if (fact.kind !== 'artifact.updated') continue;
        const { append, lastChunk, artifact } = fact.event.artifactUpdate;
        assert.ok(!append || open.get(artifact.artifactId) === true, 'append to an artifact that is not open');
        open.set(artifact.artifactId, lastChunk !== true);
      }
      if (terminal >= 0)
        assert.ok(
          [...open.values()].every(isOpen => !isOpen),
          'an artifact is open after the end',
        );
    }),
  );
});

test('the aggregate follows only from the facts that the log stores', () => {
  const stored = <T>(value: T): T => JSON.parse(JSON.stringify(value));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), steps => {
      const story = run(steps);
      const before = stored(story.facts);
      const [first, ...rest] = before;
      assert.deepEqual(stored(rest.reduce(evolve, evolve(undefined, first!))), stored(story.aggregate));
      assert.deepEqual(before, stored(story.facts), 'facts never change');
    }),
  );
});

test('events without text do not change how much of a lane is folded; a later attempt begins again', () => {
  const story = new Scenario().message('hello').input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' });
  const chunk = { firstSeq: 1, lastSeq: 1, count: 1, n: 3, splitOffset: 2, reason: 'size', heldMs: 0, firstAt: 0, lastAt: 0 };
  story.open(agent(), 'a');
  story.when({ kind: 'run', from: agent(), lane: 'a', text: 'x', last: false, n: 3, chunk });
  const data = { kind: 'artifact', lane: 'a', artifact: {}, parts: [{ data: 1 }], append: true, last: false } as const;
  story.input(agent(), { ...data, parts: [...data.parts] });
  const folded = () => story.aggregate!.lanes.a && [story.aggregate!.lanes.a.n, story.aggregate!.lanes.a.splitOffset];
  assert.deepEqual(folded(), [3, 2]);
  story.open(agent(), 'a');
  assert.deepEqual(folded(), [3, undefined], 'the same attempt continues its ordinals');
  story.open(agent('call-1-1', 2), 'a');
  assert.deepEqual(folded(), [0, undefined]);
});

test('a whole artifact in one event does not become a lane, and adds nothing to the aggregate', () => {
  const story = new Scenario().message('hello');
  const notice = { kind: 'artifact', lane: 'a', artifact: { name: 'notice' }, parts: [{ text: 'x' }], append: false } as const;
  story.input(supervisor(), { ...notice, parts: [...notice.parts], last: true });
  assert.deepEqual([story.events(), story.aggregate?.lanes], [['task', '=x.'], {}]);
});

test('a log that does not begin with task.created throws', () => {
  assert.throws(() => evolve(undefined, { kind: 'call.started', at: 1, call: 'c', agent: 'a' }), /begins with call.started/);
});

test('a record that only continues text changes generation, time and folded ordinals, and nothing else', () => {
  const decided = ({ at: _at, generation: _generation, lanes, ...rest }: TaskAggregate) => ({
    ...rest,
    lanes: Object.entries(lanes).map(([name, { n: _n, splitOffset: _offset, ...state }]) => [name, state]),
  });
  const text = (story: Scenario) => story.open(agent(), 'a').text(agent(), 'a', 'x').text(agent(), 'a', 'y');
  const textual = fc.oneof(step, fc.constant(text));
  let marked = 0;
  fc.assert(
    fc.property(fc.array(textual, { maxLength: 40 }), steps => {
      let before: TaskAggregate | undefined;
      for (const fact of run(steps).facts) {
        const after = evolve(before, fact);
        if (before !== undefined && onlyContinuesText(before, [fact])) {
          marked += 1;
          assert.deepEqual(decided(after), decided(before));
        }
        before = after;
      }
    }),
  );
  assert.ok(marked > 0, 'no record was marked');
});

const OPEN: LaneState = { producer: 'call-1', attempt: 2, phase: 'open', n: 3 };

const taskWith = (lane: LaneState | undefined) => ({ lanes: lane ? { answer: lane } : {} }) as unknown as TaskAggregate;

function chunk({ append = true, lastChunk = false, attempt = 2, lane = 'answer' } = {}): ArtifactUpdated {
  const artifact = { artifactId: 'a', parts: [{ text: 'word' }] };
  const artifactUpdate = { taskId: 't', contextId: 'c', artifact, append, lastChunk };
  return {
    kind: 'artifact.updated',
    at: 1,
    generation: 4,
    producer: 'call-1',
    attempt,
    lane,
    event: { artifactUpdate },
  } as ArtifactUpdated;
}

const ENDED = { kind: 'call.ended', at: 1, call: 'call-1', agent: 'a', state: 'TASK_STATE_COMPLETED' } as Fact;

test('a record of chunks that are appended to open lanes only continues text', () => {
  assert.equal(onlyContinuesText(taskWith(OPEN), [chunk(), chunk()]), true);
});

test('a record from which a worker decides something does not only continue text', () => {
  const cases: [string, LaneState | undefined, Fact[]][] = [
    ['no fact', OPEN, []],
    ['the first chunk of a lane', { ...OPEN, phase: 'declared' }, [chunk({ append: false })]],
    ['a chunk of an unknown lane', undefined, [chunk()]],
    ['text that replaces that of an earlier attempt', { ...OPEN, phase: 'replacing' }, [chunk({ append: false })]],
    ['a chunk of a newer attempt', { ...OPEN, attempt: 1 }, [chunk()]],
    ['the last chunk', OPEN, [chunk({ lastChunk: true })]],
    ['the end of a call beside text', OPEN, [chunk(), ENDED]],
  ];
  for (const [what, lane, facts] of cases) assert.equal(onlyContinuesText(taskWith(lane), facts), false, what);
  assert.equal(onlyContinuesText(undefined, [chunk()]), false, 'the first record of a task');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message, Part, TaskState } from '@hopline/a2a';
import type { Fact, FactRecord, TaskAggregate } from '@hopline/events';
import fc from 'fast-check';
import { evolve } from './evolve.ts';
import { project, projectRecord, type TaskView, TaskViewBuilder } from './project.ts';

const ids = { taskId: 't', contextId: 'c' };
const created: Fact = {
  kind: 'task.created',
  at: 1,
  generation: 1,
  event: {
    task: {
      id: 't',
      contextId: 'c',
      status: { state: 'TASK_STATE_SUBMITTED' },
      history: [{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] }],
    },
  },
  role: 'agent.a',
  profile: 'transparent',
};
const status = (generation: number, state: TaskState): Fact => ({
  kind: 'status.changed',
  at: generation,
  generation,
  event: { statusUpdate: { ...ids, status: { state } } },
});
const working = status(2, 'TASK_STATE_WORKING');
const completed = status(3, 'TASK_STATE_COMPLETED');

const recordOf = (aggregate: TaskAggregate, facts: Fact[]): FactRecord => ({
  v: 1,
  facts,
  aggregate,
  startSeq: 0,
  startStoredAt: 1,
});
const aggregateOf = (facts: Fact[]): TaskAggregate => facts.reduce(evolve, undefined as TaskAggregate | undefined)!;

test('a record is applied fact by fact, with a callback after each', () => {
  const facts = [created, working];
  const seen: [string, number][] = [];
  const view = projectRecord(undefined, recordOf(aggregateOf(facts), facts), ({ generation }, { kind }) =>
    seen.push([kind, generation]),
  );
  assert.deepEqual(seen, [
    ['task.created', 1],
    ['status.changed', 2],
  ]);
  assert.deepEqual(
    view,
    facts.reduce((folded, fact) => project(folded, fact), undefined as ReturnType<typeof project> | undefined),
  );
});

test('a log without its beginning is projected from the aggregate of its oldest record', () => {
  const aggregate = aggregateOf([created, working, completed]);
  const view = projectRecord(undefined, recordOf(aggregate, [completed]));
  assert.deepEqual(
    [view.task.id, view.task.contextId, view.task.status.state, view.generation],
    ['t', 'c', 'TASK_STATE_COMPLETED', 3],
  );
  assert.deepEqual(view.task.metadata, { 'hopline.partial': true });
  const empty = projectRecord(undefined, recordOf(aggregateOf([created, working]), []));
  assert.deepEqual([empty.task.status.state, empty.generation], ['TASK_STATE_WORKING', 2]);
});

test('generations of the first record are counted back from its aggregate, even while the record is applied', () => {
  const aggregate = aggregateOf([created, working, completed]);
  const seen: number[] = [];
  const step: Fact = { kind: 'step.recorded', at: 1, step: 's', payload: 1 };
  projectRecord(undefined, recordOf(aggregate, [step, completed]), ({ generation }) => seen.push(generation));
  assert.deepEqual(seen, [2, 3]);
});

const update = (artifactId: string, parts: Part[], transitory?: true): Fact => ({
  kind: 'artifact.updated',
  at: 1,
  generation: 3,
  lane: artifactId,
  producer: 'agent',
  attempt: 1,
  ...(transitory && { transitory }),
  event: { artifactUpdate: { ...ids, artifact: { artifactId, parts }, append: true } },
});
const viewOf = (...facts: Fact[]) => facts.reduce<TaskView | undefined>(project, undefined)!.task;

test('a transitory artifact stays while the task runs, and leaves it with its end, whatever the end is', () => {
  const facts = [created, update('own', [{ text: 'x' }]), update('gone', [{ text: 'y' }], true), working];
  const shown = (state: TaskState) => viewOf(...facts, status(3, state)).artifacts?.map(({ artifactId }) => artifactId);
  for (const state of ['TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'] as const)
    assert.deepEqual(shown(state), ['own', 'gone'], state);
  for (const state of ['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'] as const)
    assert.deepEqual(shown(state), ['own'], state);
});

test('only a part that has nothing but text is merged with the text before it', () => {
  const marked = { text: 'b', metadata: { k: 1 } };
  const facts = [[{ text: 'a' }], [marked], [{ text: 'c' }], [{ text: 'd' }, { text: 'e' }]].map(parts => update('own', parts));
  assert.deepEqual(viewOf(created, ...facts).artifacts?.[0]?.parts, [{ text: 'a' }, marked, { text: 'cd' }, { text: 'e' }]);
});

test('a message joins the history once by its id, whether it came with a status or as a question', () => {
  const message: Message = { messageId: 'n', role: 'ROLE_AGENT', parts: [{ text: 'which?' }] };
  const again: Message = { ...message, messageId: 'm' };
  const asks: Fact = {
    ...(working as Extract<Fact, { kind: 'status.changed' }>),
    event: { statusUpdate: { ...ids, status: { state: 'TASK_STATE_INPUT_REQUIRED', message } } },
    history: [message, again],
  };
  const reply: Message = { messageId: 'o', role: 'ROLE_USER', parts: [{ text: 'that one' }] };
  const { history } = viewOf(created, asks, { kind: 'message.received', at: 1, message: reply, turn: 2 });
  assert.deepEqual(
    history?.map(({ messageId }) => messageId),
    ['m', 'n', 'o'],
  );
});

const somePart: fc.Arbitrary<Part> = fc.oneof(
  fc.string({ maxLength: 2 }).map(text => ({ text })),
  fc.constant({ text: 'm', metadata: { k: 1 } }),
  fc.integer().map(data => ({ data })),
);
const someMessage = fc
  .record({ messageId: fc.constantFrom('m', 'n', 'o'), parts: fc.array(somePart, { maxLength: 2 }) })
  .map(({ messageId, parts }): Message => ({ messageId, role: 'ROLE_AGENT', parts }));
const someUpdate = fc
  .record({
    artifactId: fc.constantFrom('a', 'b', 'c'),
    parts: fc.array(somePart, { maxLength: 3 }),
    append: fc.boolean(),
    transitory: fc.boolean(),
  })
  .map(({ artifactId, parts, append, transitory }): Fact => {
    const around = { at: 1, generation: 1, lane: 'l', producer: 'agent', attempt: 1, ...(transitory && { transitory }) };
    return {
      kind: 'artifact.updated',
      ...around,
      event: { artifactUpdate: { ...ids, artifact: { artifactId, parts }, append } },
    };
  });
const someStatus = fc
  .record({
    state: fc.constantFrom('TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_COMPLETED'),
    message: fc.option(someMessage),
    history: fc.array(someMessage, { maxLength: 2 }),
    direct: fc.boolean(),
  })
  .map(({ state, message, history, direct }): Fact => {
    const statusUpdate = { ...ids, status: { state, ...(message && { message }) }, metadata: { [state]: true } };
    return { kind: 'status.changed', at: 1, generation: 1, event: { statusUpdate }, history, ...(direct && { direct }) };
  });
const someFact = fc.oneof(
  { weight: 6, arbitrary: someUpdate },
  { weight: 2, arbitrary: someStatus },
  { weight: 1, arbitrary: someMessage.map((message): Fact => ({ kind: 'message.received', at: 1, message, turn: 2 })) },
  { weight: 1, arbitrary: fc.constant<Fact>({ kind: 'step.recorded', at: 1, step: 's', payload: 1 }) },
  { weight: 1, arbitrary: fc.constant(created) },
);

test('a builder has the view of projectRecord after each fact, and changes neither the facts nor a view that was read', () => {
  const someRecords = fc.array(fc.record({ facts: fc.array(someFact, { maxLength: 6 }), isRead: fc.boolean() }), {
    maxLength: 8,
  });
  const aggregate = aggregateOf([created, working]);
  const isEqual = (isWhole: boolean, records: { facts: Fact[]; isRead: boolean }[]) => {
    const builder = new TaskViewBuilder();
    let view: TaskView | undefined;
    const read: { built: TaskView; projected: TaskView }[] = [];
    for (const { facts, isRead } of isWhole ? [{ facts: [created], isRead: false }, ...records] : records) {
      const record = recordOf(aggregate, facts);
      // The builder gets its own copy. If it changed a fact, it would otherwise change both views.
      const copy = structuredClone(record);
      const projected: TaskView[] = [];
      view = projectRecord(view, record, after => projected.push(after));
      let applied = 0;
      builder.add(copy, () => {
        if (isRead) read.push({ built: builder.view!, projected: projected[applied]! });
        applied += 1;
      });
      assert.equal(applied, facts.length);
      assert.equal(builder.state, view.task.status.state);
      assert.deepEqual(copy, record);
    }
    assert.deepEqual(builder.view, view);
    for (const { built, projected } of read) assert.deepEqual(built, projected);
  };
  fc.assert(fc.property(fc.boolean(), someRecords, isEqual), { numRuns: 1_000 });
});

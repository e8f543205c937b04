import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { type AgentInput, INPUT_DEPTH_MAX, isVisible } from '@hopline/events';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { INPUT_MALFORMED, INPUT_UNREADABLE, INPUTS_LOST } from '@hopline/task';
import { createLogger, type HopMetrics, type Logger, startTelemetry } from '@hopline/telemetry';
import fc from 'fast-check';
import { untilTick } from '../../../test/kit/until.ts';
import { REJECTED_LINES_PER_MINUTE_MAX, type RejectedRecord, RejectedRecords } from './rejected-records.ts';
import { metricsOf, shardContext } from './shard.test-kit.ts';
import { Shard, type ShardContext } from './shard.ts';

const FROM = { id: 'agent', agent: 'echo', turn: 1, item: 1, attempt: 1 };
const MESSAGE = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hello' }] };
const MESSAGE_INPUT = {
  kind: 'message',
  message: MESSAGE,
  contextId: 'c',
  role: 'agent.echo',
  profile: 'transparent',
} as const;
const OPEN: AgentInput = { kind: 'open', lane: 'a', artifact: { name: 'response' } };
const WORKING: AgentInput = { kind: 'status', state: 'TASK_STATE_WORKING' };
const CALL = { kind: 'call', call: 'c', agent: 'b' };
const COMPLETED: AgentInput = { kind: 'status', state: 'TASK_STATE_COMPLETED' };

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
}

/** A shard that folds the inputs of a log in memory, and the reports of the shard. */
class FoldingShard {
  readonly log: MemoryLog = createMemoryLog({ shards: 1 });
  readonly rejected: RejectedRecord[] = [];
  readonly reasons: string[] = [];
  readonly failures: unknown[] = [];
  readonly context: ShardContext;
  readonly #shard: Shard;

  constructor(more: Partial<ShardContext> = {}) {
    this.context = shardContext(this.log, {
      metrics: metricsOf(reason => this.reasons.push(reason)),
      onRejectedRecord: rejected => void this.rejected.push(rejected),
      onFailure: error => void this.failures.push(error),
      ...more,
    });
    this.#shard = new Shard(0, { checkpoint: 0 }, this.context);
    this.#shard.start();
  }

  get checkpoint(): number {
    return this.#shard.checkpoint;
  }

  /** Stores an arbitrary payload as a record of the task. */
  async append(taskId: string, payload: unknown): Promise<number> {
    return this.log.garbage('inputs', taskId, JSON.stringify(payload));
  }

  async start(taskId: string): Promise<void> {
    await this.append(taskId, { v: 1, at: 1, from: 'client', input: MESSAGE_INPUT });
  }

  async agent(taskId: string, n: number, ...inputs: unknown[]): Promise<void> {
    await this.append(taskId, { v: 1, at: 1, from: FROM, n, inputs });
  }

  /** The task after its end, folded from its facts. */
  async ended(taskId: string): Promise<Fold> {
    const fold = new Fold();
    for await (const { record } of await this.log.facts.follow(taskId, 0, AbortSignal.timeout(10_000))) {
      for (const fact of record.facts.filter(isVisible)) fold.add(fact.event);
      if (fold.ended) return fold;
    }
    throw new Error('the task has not ended');
  }

  /** Runs another task of the shard to its end. */
  async assertServesOthers(taskId: string): Promise<void> {
    await this.start(taskId);
    await this.agent(taskId, 1, WORKING, OPEN, { kind: 'text', lane: 'a', tokens: ['whole'] }, COMPLETED);
    const fold = await this.ended(taskId);
    assert.deepEqual([fold.task?.status.state, fold.textOf('response')], ['TASK_STATE_COMPLETED', 'whole']);
    assert.deepEqual(this.failures, []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shard.stop();
  }
}

const notRecords: [string, unknown][] = [
  ['an ordinal below 1', { v: 1, at: 1, from: FROM, n: 0, inputs: [WORKING] }],
  ['a producer without a turn', { v: 1, at: 1, from: { ...FROM, turn: 'x' }, n: 1, inputs: [WORKING] }],
  ['a message without content', { v: 1, at: 1, from: 'client', input: { ...MESSAGE_INPUT, message: undefined } }],
  ['a role that is not one', { v: 1, at: 1, from: 'client', input: { ...MESSAGE_INPUT, role: 'agent.>' } }],
  ['a list', [1]],
];

test('a malformed record is skipped, reported with its sequence, and does not affect other tasks', async () => {
  await using shard = new FoldingShard();
  await shard.start('bad');
  for (const [what, payload] of notRecords) {
    const seq = await shard.append('bad', payload);
    await shard.assertServesOthers(`other-${seq}`);
    assert.deepEqual(shard.rejected.pop(), { seq, taskId: 'bad', fault: 'not a record' }, what);
  }
  assert.deepEqual(shard.rejected, []);
});

const ARTIFACT = { kind: 'artifact', lane: 'b', artifact: { name: 'b' }, append: false, last: true };
const malformed: [string, unknown][] = [
  ['a call whose message is not a message', { ...CALL, message: { text: 'x' } }],
  ['a call whose presentation is a text', { ...CALL, presentation: 'own' }],
  ['a call whose trace is not a carrier', { ...CALL, trace: { traceparent: 1 } }],
  ['tokens that are not strings', { kind: 'text', lane: 'a', tokens: [5] }],
  ['a history that is not a list', { ...WORKING, history: 5 }],
  ['a step without payload', { kind: 'step', step: '1' }],
  ['an unknown state', { kind: 'status', state: 'TASK_STATE_DONE' }],
  ['bytes that are not base64', { ...ARTIFACT, parts: [{ raw: Buffer.from('x').toJSON() }] }],
  ['an input that is not an object', 5],
];

test('a malformed input ends its task at once with a reason, even in the last record of its producer', async () => {
  for (const [what, input] of malformed) {
    await using shard = new FoldingShard();
    await shard.start('t');
    const text = { kind: 'text', lane: 'a', tokens: ['before'] };
    await shard.agent('t', 1, WORKING, OPEN, text, input, { ...text, tokens: ['after'] }, COMPLETED);
    const fold = await shard.ended('t');
    const { state } = fold.task?.status ?? {};
    assert.deepEqual(
      [state, fold.task?.metadata?.reason, fold.textOf('response'), fold.violations],
      ['TASK_STATE_FAILED', INPUT_MALFORMED, 'before', []],
      what,
    );
    assert.deepEqual(shard.rejected, [{ seq: 2, taskId: 't', fault: 'malformed input' }], what);
    await shard.assertServesOthers('other');
  }
});

test('a malformed input changes nothing if its producer is unknown to the task or its attempt is an earlier one', async () => {
  await using shard = new FoldingShard();
  await shard.start('t');
  await shard.append('t', { v: 1, at: 1, from: { ...FROM, attempt: 2 }, n: 1, inputs: [WORKING, OPEN] });
  for (const from of [FROM, { ...FROM, id: 'other' }, { ...FROM, agent: 'other' }])
    await shard.append('t', { v: 1, at: 1, from, n: 3, inputs: [{ ...WORKING, history: 5 }] });
  const rest = [{ kind: 'text', lane: 'a', tokens: ['whole'] }, COMPLETED];
  await shard.append('t', { v: 1, at: 1, from: { ...FROM, attempt: 2 }, n: 3, inputs: rest });
  const fold = await shard.ended('t');
  assert.deepEqual([fold.task?.status.state, fold.textOf('response')], ['TASK_STATE_COMPLETED', 'whole']);
});

test('after an agent’s record was skipped, its task fails at the next record, because its text would have a gap', async () => {
  await using shard = new FoldingShard();
  await shard.start('t');
  await shard.agent('t', 1, WORKING, OPEN);
  await shard.append('t', { v: 2, at: 1, from: FROM, n: 3, inputs: [{ kind: 'text', lane: 'a', tokens: ['x'] }] });
  await shard.agent('t', 4, COMPLETED);
  const fold = await shard.ended('t');
  assert.deepEqual([fold.task?.status.state, fold.task?.metadata?.reason], ['TASK_STATE_FAILED', INPUTS_LOST]);
});

test('a record of a later version is skipped and reported as such', async () => {
  await using shard = new FoldingShard();
  const seq = await shard.append('t', { v: 2, at: 1, from: 'client', input: MESSAGE_INPUT });
  await shard.assertServesOthers('other');
  assert.deepEqual(shard.rejected, [{ seq, taskId: 't', fault: 'unknown version' }]);
});

test('an input of an unknown kind is skipped and counted: it neither ends the task nor leaves a gap', async () => {
  await using shard = new FoldingShard();
  await shard.start('t');
  for (const input of [{ kind: 'pause' }, { kind: 'unknown' }]) {
    await shard.append('t', { v: 1, at: 1, from: 'client', input });
    await shard.append('t', { v: 1, at: 1, from: 'relay', input });
  }
  await shard.agent('t', 1, WORKING, { kind: 'mood', lane: 'a' }, OPEN, { kind: 'text', lane: 'a', tokens: ['whole'] });
  await shard.agent('t', 5, { kind: 'mood' }, COMPLETED);
  const fold = await shard.ended('t');
  assert.deepEqual([fold.task?.status.state, fold.textOf('response')], ['TASK_STATE_COMPLETED', 'whole']);
  assert.deepEqual(
    shard.reasons,
    Array.from({ length: 6 }, () => 'unknown_kind'),
  );
  assert.deepEqual([shard.rejected, shard.failures], [[], []]);
});

test('an input may nest INPUT_DEPTH_MAX levels; with one more or any greater depth its task fails', async () => {
  await using shard = new FoldingShard();
  await shard.start('t');
  // The input, its list of parts, the part and its data are four levels.
  const data = (levels: number) => ({ ...OPEN, kind: 'artifact', parts: [{ data: nested(levels) }], append: false, last: true });
  await shard.agent('t', 1, WORKING, data(INPUT_DEPTH_MAX - 3));
  for (const levels of [INPUT_DEPTH_MAX - 2, 6_500]) {
    const taskId = `u${levels}`;
    await shard.start(taskId);
    const seq = await shard.append(taskId, { v: 1, at: 1, from: FROM, n: 1, inputs: [data(levels)] });
    assert.equal((await shard.ended(taskId)).task?.metadata?.reason, INPUT_MALFORMED);
    await shard.assertServesOthers(`other-${levels}`);
    assert.deepEqual(shard.rejected.pop(), { seq, taskId, fault: 'malformed input' });
  }
  await shard.agent('t', 3, COMPLETED);
  assert.equal((await shard.ended('t')).task?.status.state, 'TASK_STATE_COMPLETED');
});

test('an input that cannot be encoded, or throws elsewhere, fails only its task', async () => {
  for (const fault of ['append', 'side effect', 'every append'] as const) {
    let thrown = 0;
    const isHit = (facts: readonly { kind: string }[]) =>
      facts.some(({ kind }) => kind === 'lane.opened') || (fault === 'every append' && thrown > 0);
    const throwOn = (taskId: string, facts: readonly { kind: string }[]) => {
      if (taskId !== 't' || !isHit(facts) || (fault !== 'every append' && thrown > 0)) return;
      thrown += 1;
      throw new RangeError('Maximum call stack size exceeded');
    };
    const facts = Object.create(null) as MemoryLog['facts'];
    await using shard = new FoldingShard({
      facts,
      applySideEffects: ({ aggregate, facts }) => {
        if (fault === 'side effect') throwOn(aggregate.taskId, facts);
        return undefined;
      },
    });
    Object.assign(facts, {
      last: (taskId: string) => shard.log.facts.last(taskId),
      isLost: async () => false,
      append: async (...[record, options]: Parameters<MemoryLog['facts']['append']>) => {
        if (fault !== 'side effect') throwOn(record.aggregate.taskId, record.facts);
        return shard.log.facts.append(record, options);
      },
    });
    await shard.start('t');
    await shard.agent('t', 1, WORKING);
    await shard.agent('t', 2, OPEN, { kind: 'text', lane: 'a', tokens: ['x'] });
    if (fault === 'every append') await untilTick(() => shard.rejected.length > 0);
    else {
      const fold = await shard.ended('t');
      const reason = fault === 'append' ? 'an event of this task cannot be encoded' : INPUT_UNREADABLE;
      assert.deepEqual(
        [fold.task?.status.state, fold.task?.metadata?.reason, fold.violations],
        ['TASK_STATE_FAILED', reason, []],
      );
    }
    await shard.assertServesOthers('other');
    const newest = await shard.append('other', { v: 1, at: 1, from: 'client', input: { kind: 'cancel' } });
    await untilTick(() => shard.checkpoint >= newest);
  }
});

test('a task whose newest record lacks a part of its aggregate affects no other task', async () => {
  await using shard = new FoldingShard();
  const aggregate = { taskId: 't', contextId: 'c', state: 'TASK_STATE_WORKING', generation: 1, at: 1, turn: 1, foldedSeq: 0 };
  const record = { v: 1, facts: [], aggregate, startSeq: 1, startStoredAt: 1 };
  await shard.log.facts.append(record as never, { expected: 0, id: 'damaged' });
  for (const messageId of ['one', 'two']) {
    const message = { ...MESSAGE, messageId };
    await shard.append('t', { v: 1, at: 1, from: 'client', input: { ...MESSAGE_INPUT, message } });
  }
  await shard.assertServesOthers('other');
});

test('no mutated record stops a shard', async () => {
  const valid = [
    { v: 1, at: 1, from: 'client', input: MESSAGE_INPUT },
    { v: 1, at: 1, from: 'client', input: { kind: 'cancel' } },
    { v: 1, at: 1, from: 'relay', input: { kind: 'timeout', request: 1 } },
    { v: 1, at: 1, from: 'relay', input: { kind: 'copy-forward', startStoredAt: 1 } },
    { v: 1, at: 1, from: FROM, n: 1, inputs: [WORKING, OPEN, { kind: 'text', lane: 'a', tokens: ['x', '\ud83d'], dt: [0, 1] }] },
    {
      v: 1,
      at: 1,
      from: FROM,
      n: 4,
      inputs: [
        { kind: 'close', lane: 'a' },
        { kind: 'step', step: '1', payload: null },
      ],
    },
    {
      v: 1,
      at: 1,
      from: FROM,
      n: 1,
      inputs: [
        { kind: 'call', call: 'c', agent: 'b' },
        { ...WORKING, message: MESSAGE },
      ],
    },
    {
      v: 1,
      at: 1,
      from: { ...FROM, id: 'supervisor', agent: 'supervisor' },
      n: 1,
      inputs: [{ kind: 'call', call: 'd', agent: 'b', presentation: {}, message: MESSAGE, metadata: {}, resume: 1, trace: {} }],
    },
    { v: 1, at: 1, from: FROM, n: 1, inputs: [{ kind: 'ended', call: 'c', state: 'TASK_STATE_FAILED', reason: 'r' }] },
    {
      v: 1,
      at: 1,
      from: { ...FROM, attempt: 2 },
      n: 1,
      inputs: [{ ...OPEN, kind: 'artifact', parts: [{ text: 'x' }], append: true, last: false }],
    },
  ];
  const odd = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom('__proto__', 'constructor', 'a', 1e300, -1, 2 ** 53, [], {}, { kind: 'text' }, 'agent', '\ud83d'),
  );
  const mutation = fc.record({ at: fc.nat(40), value: odd, remove: fc.boolean() });
  const record = fc.record({ base: fc.constantFrom(...valid), mutations: fc.array(mutation, { maxLength: 3 }) });
  await using shard = new FoldingShard();
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 8 }), async records => {
      const taskId = `t${runs++}`;
      await shard.start(taskId);
      for (const { base, mutations } of records) await shard.append(taskId, mutated(base, mutations));
      assert.deepEqual(shard.failures, []);
    }),
    { numRuns: 300 },
  );
  await shard.assertServesOthers('last');
  assert.deepEqual(
    shard.rejected.filter(({ fault }) => fault === 'not applicable'),
    [],
  );
});

/** A copy of a value in which some members, numbered depth first, are removed or replaced. */
function mutated(base: unknown, mutations: readonly { at: number; value: unknown; remove: boolean }[]): unknown {
  const copy = structuredClone(base);
  const members: [object, string][] = [];
  const collect = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      members.push([value, name]);
      collect(member);
    }
  };
  collect(copy);
  for (const { at, value, remove } of mutations) {
    const [owner, name] = members[at % members.length]!;
    if (remove) Reflect.deleteProperty(owner, name);
    else Reflect.set(owner, name, value);
  }
  return copy;
}

test('a task that a later version wrote waits for a relay of that version; other tasks of its shard continue', async () => {
  await using shard = new FoldingShard();
  await shard.start('t');
  let newest = await shard.log.facts.last('t');
  while (newest === undefined) newest = await shard.log.facts.last('t');
  await shard.log.facts.append({ ...newest.record, v: 2 } as never, { expected: newest.seq, id: 'later' });
  const other = new Shard(0, { checkpoint: 0 }, shard.context);
  other.start();
  const cancel = { v: 1, at: 1, from: 'client', input: { kind: 'cancel' } };
  const seq = await shard.append('u', { v: 1, at: 1, from: 'client', input: MESSAGE_INPUT });
  await shard.append('t', cancel);
  await untilTick(async () => (await shard.log.facts.last('u')) !== undefined && shard.rejected.length > 0);
  assert.deepEqual(shard.rejected, [{ seq: 1, taskId: 't', fault: 'unknown version' }]);
  assert.ok(seq > 1 && other.checkpoint === 0);
  await other.stop();
});

test('a task whose facts have expired is refused: a message cannot begin it again', async () => {
  for (const [hadFacts, message, begun] of [
    [true, MESSAGE_INPUT, false],
    [false, { ...MESSAGE_INPUT, continues: true }, false],
    [false, MESSAGE_INPUT, true],
  ] as const) {
    await using shard = new FoldingShard({ indexedSeq: async taskId => (hadFacts && taskId === 't' ? 1 : undefined) });
    shard.log.expire('facts', 'before', shard.log.garbage('facts', 'before') + 1);
    await shard.append('t', { v: 1, at: 1, from: 'client', input: message });
    await shard.assertServesOthers('other');
    assert.equal((await shard.log.facts.last('t')) !== undefined, begun);
    assert.deepEqual(shard.reasons, begun ? [] : ['unknown_task']);
  }
});

test('times of facts follow the wall clock and never decrease; a hold does not depend on the wall clock', async () => {
  let wallMs = 1_000_000;
  await using shard = new FoldingShard({
    wallNow: () => wallMs,
    coalesce: { eventCostMs: 1_000, holdMsMax: 100, chunkBytesMax: 32_768 },
  });
  await shard.start('t');
  await shard.agent('t', 1, WORKING, OPEN, { kind: 'text', lane: 'a', tokens: ['one', ' two', ' three'] });
  const times = async (count: number): Promise<number[]> => {
    for (;;) {
      const all: number[] = [];
      for await (const { record } of shard.log.facts.read('t', 1))
        all.push(...record.facts.filter(isVisible).map(({ at }) => at));
      if (all.length >= count) return all;
      await new Promise(resolve => setTimeout(resolve, 2));
    }
  };
  assert.deepEqual(await times(3), [1_000_000, 1_000_000, 1_000_000]);
  // The clock is set back while text is held. Later the machine was suspended.
  wallMs = 1_000;
  await shard.agent('t', 6, { kind: 'text', lane: 'a', tokens: [' four'] });
  assert.equal((await times(4)).at(-1), 1_000_000);
  wallMs = 9_000_000;
  await shard.agent('t', 7, COMPLETED);
  assert.equal((await times(6)).at(-1), 9_000_000);
});

test('log lines for rejected records are limited per minute, contain no content, and count the omitted ones', () => {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({ service: 'relay', instance: 'test', level: 'fatal' });
  const capturing = {
    ...logger,
    child: () => capturing,
    warn: (fields: object) => void lines.push({ ...fields }),
  } as unknown as Logger;
  const counts: number[] = [];
  const metrics = { recordsRejected: { add: (count: number) => void counts.push(count) } } as Pick<HopMetrics, 'recordsRejected'>;
  let nowMs = 0;
  const records = new RejectedRecords(metrics, capturing, () => nowMs);
  const error = new TypeError('secret');
  for (let seq = 1; seq <= REJECTED_LINES_PER_MINUTE_MAX + 5; seq++)
    records.add({ seq, taskId: 't', fault: 'not applicable', error });
  assert.equal(lines.length, REJECTED_LINES_PER_MINUTE_MAX);
  nowMs = 60_000;
  records.add({ seq: 99, taskId: 't', fault: 'not a record' });
  assert.deepEqual(lines.at(-1), { raw_seq: 99, reason: 'not_a_record', suppressed: 5 });
  assert.equal(counts.length, REJECTED_LINES_PER_MINUTE_MAX + 6);
  assert.ok(!JSON.stringify(lines).includes('secret'));
});

test('the line of a rejected record has the reason of its metric, and the trace of its record', async () => {
  // The trace of a line comes from the active context.
  const telemetry = await startTelemetry({ service: 'relay', instance: 'relay-1', version: '0', env: {} });
  try {
    const lines: { reason: string; trace_id: string; task_id: string }[] = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
    const logger = createLogger({ service: 'relay', instance: 'relay-1', level: 'info', destination });
    const traceId = 'a'.repeat(32);
    const trace = { traceparent: `00-${traceId}-${'b'.repeat(16)}-01` };
    for (const fault of ['not a record', 'unknown version'] as const)
      new RejectedRecords(telemetry.metrics, logger).add({ seq: 7, taskId: 'task-1', fault, trace });
    assert.deepEqual(
      lines.map(({ reason, task_id, trace_id }) => [reason, task_id, trace_id]),
      [
        ['not_a_record', 'task-1', traceId],
        ['unknown_version', 'task-1', traceId],
      ],
    );
    for (const { reason } of lines)
      assert.match(await telemetry.metricsText(), new RegExp(`hopline_records_rejected_total\\{.*reason="${reason}"\\} 1`));
  } finally {
    await telemetry.shutdown();
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, AgentRecord, ArtifactInput, Producer, Role, Takeover } from '@hopline/events';
import { factsId, IMPORTER } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { ROOT_AGENT } from '@hopline/task';
import { agent, Scenario, StoredScenario, supervisor } from '@hopline/task/test-kit';
import { percentilesOf } from './producers.ts';
import { readTaskRecords } from './task-records.ts';
import { reportTask } from './task-report.ts';

const NOTICE = '🔧 Supervisor: Calling Agent Argocd...\n';

test('a trace that was not sampled is named, because a tracing backend cannot show it', async () => {
  const log = createMemoryLog({ shards: 1 });
  const ask = async (id: string, ...flags: string[]) => {
    const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
    const input = { kind: 'message', message, contextId: 'c', role: 'agent.argocd', profile: 'transparent' } as const;
    const given = { kind: 'client', taskId: id, input } as const;
    for (const [n, one] of flags.entries()) {
      const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-${one}` };
      await log.inputs.append(id, { v: 1, at: 1_000, from: 'client', input }, { id: `${id}-${n}`, trace });
    }
    await new StoredScenario(log.facts, id, () => 1_420).when(given).store();
    return (await reportTask(log, id))!;
  };
  const all = ['a'.repeat(32)];
  const [kept, dropped, mixed] = [await ask('t', '01'), await ask('u', '00'), await ask('v', '00', '03')];
  assert.deepEqual([kept.traces, kept.unsampled], [all, undefined]);
  assert.deepEqual([dropped.traces, dropped.unsampled], [all, all]);
  assert.deepEqual([mixed.traces, mixed.unsampled], [all, undefined]);
});

test('a trace counts the output of each producer in code points, and holds the times of each chunk [S2-30 S2-38]', async () => {
  const log = createMemoryLog({ shards: 1 });
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
  const question = { kind: 'message', message, contextId: 'c', role: 'agent.argocd', profile: 'transparent' } as const;
  const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
  await log.inputs.append('t', { v: 1, at: 1_000, from: 'client', input: question }, { id: '1', trace });
  const from = agent(ROOT_AGENT);
  const notice: ArtifactInput = {
    kind: 'artifact',
    lane: 'n',
    artifact: { name: 'notice' },
    parts: [{ text: NOTICE }],
    append: false,
    last: true,
  };
  const open = { kind: 'open', lane: 'a', artifact: { name: 'answer' } } as const;
  const inputs: AgentInput[] = [notice, open, { kind: 'text', lane: 'a', tokens: ['👍', ' ', 'é\n'], dt: [0, 5, 305] }];
  await log.inputs.append('t', { v: 1, at: 1_100, from, n: 1, inputs }, { id: '2', trace });
  const chunk = { firstSeq: 2, lastSeq: 2, count: 3, n: 5, reason: 'silence', heldMs: 12, firstAt: 1_100, lastAt: 1_405 };
  await new StoredScenario(log.facts, 't', () => 1_420)
    .when({ kind: 'client', taskId: 't', input: question })
    .input(from, notice)
    .input(from, open)
    .when({ kind: 'run', from, lane: 'a', text: '👍 é\n', last: false, n: 5, chunk })
    .store();

  const result = (await reportTask(log, 't'))!;
  assert.deepEqual([result.traces, result.state, result.contextId], [['a'.repeat(32)], 'submitted', 'c']);
  const [producer] = result.producers;
  assert.deepEqual(
    [producer?.tokens, producer?.characters, producer?.otherEvents, producer?.firstMs, producer?.lastMs, producer?.gapMsMax],
    [3, 4, 2, 100, 405, 300],
  );
  const [, noticeEvent, answer] = result.events;
  // The notice has 39 UTF-16 units; its emoji is two of them.
  assert.deepEqual([noticeEvent?.name, noticeEvent?.characters, NOTICE.length], ['notice', 38, 39]);
  const { appendMs = 0, ...chunkOfAnswer } = answer?.chunk ?? {};
  assert.deepEqual(chunkOfAnswer, {
    tokens: 3,
    reason: 'silence',
    firstSeq: 2,
    lastSeq: 2,
    firstMs: 100,
    lastMs: 405,
    publishMs: 308,
    heldMs: 12,
    waitMs: 0,
    ageMs: 320,
  });
  assert.equal(appendMs, (answer?.storedMs ?? 0) - 420);
  assert.equal(JSON.stringify(result).includes('👍'), false, 'a trace holds no text');
  assert.equal(await reportTask(log, 'other'), undefined);
});

/** A task of a supervisor and one agent whose work was repeated, as services write it. Times count from 1,000,000. */
class TracedTask {
  readonly #log = createMemoryLog({ shards: 1 });
  readonly #scenario = new Scenario('t', () => START + this.#now);
  #now = 0;
  #expected = 0;
  #appends = 0;

  get trace() {
    return reportTask(this.#log, 't');
  }

  async message(at: number, messageId = 'm', role: Role = 'supervisor') {
    const message = { messageId, role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
    const input = { kind: 'message', message, contextId: 'c', role, profile: 'transparent' } as const;
    await this.#log.inputs.append('t', { v: 1, at: START + at, from: 'client', input }, { id: `t:msg:${messageId}` });
    this.#scenario.when({ kind: 'client', taskId: 't', input });
  }

  async record(from: Producer, at: number, n: number, inputs: AgentInput[], more: Pick<AgentRecord, 'taken' | 'tools'> = {}) {
    const id = `t:${from.id}:${from.turn}:${from.attempt}:${n}`;
    await this.#log.inputs.append('t', { v: 1, at: START + at, from, n, inputs, ...more }, { id });
    for (const input of inputs) {
      if (input.kind !== 'text') this.#scenario.input(from, input);
      else {
        const { lane, tokens } = input;
        const times = { firstSeq: 1, lastSeq: 1, heldMs: 3, waitMs: 2, firstAt: START + at, lastAt: START + at };
        const chunk = { ...times, count: tokens.length, n: n + tokens.length, reason: 'ready' };
        this.#scenario.when({ kind: 'run', from, lane, text: tokens.join(''), last: false, n: chunk.n, chunk });
      }
    }
  }

  /** Stores the facts of the task so far. */
  async store(at: number, relay: string, takeover?: Takeover) {
    this.#now = at;
    const facts = this.#scenario.facts.slice(this.#appends).map(fact => ({ ...fact, at: START + at }));
    this.#appends = this.#scenario.facts.length;
    const aggregate = { ...this.#scenario.aggregate!, at: START + at };
    const record = { v: 1 as const, facts, aggregate, startSeq: this.#expected === 0 ? 0 : 1, startStoredAt: 0 };
    const id = factsId('t', relay, this.#expected + 1);
    const options = { expected: this.#expected, id };
    this.#expected = (await this.#log.facts.append({ ...record, ...(takeover && { takeover }) }, options)).seq;
  }
}

const START = 1_000_000;
const at = (ms: number) => START + ms;

test('a trace has the hops of a turn, its attempts, its takeovers with their cause, and the cause of each gap', async () => {
  const task = new TracedTask();
  await task.message(0);
  await task.store(10, 'relay-1-aaaaaaaa');
  const root = supervisor();
  const call = { kind: 'call', call: 'call-1-1', agent: 'argocd' } as const;
  const working = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;
  await task.record(root, 25, 1, [working, call], { taken: { queuedAt: at(12), at: at(20) } });
  await task.store(30, 'relay-1-aaaaaaaa');
  const lane = { kind: 'open', lane: 'a', artifact: { name: 'response' } } as const;
  const text = { kind: 'text', lane: 'a', tokens: ['a', 'b'] } as const;
  const tools = [
    { name: 'look_up', at: at(60), ms: 40 },
    { name: 'look_up', at: at(80), ms: 30 },
  ];
  const taken = { queuedAt: at(35), at: at(50) };
  await task.record(agent(), 200, 1, [lane, { ...text, tokens: [...text.tokens] }], { taken, tools });
  await task.store(220, 'relay-1-aaaaaaaa');
  const again = { queuedAt: at(35), at: at(2_200), cause: 'redelivery' } as const;
  await task.record(agent(undefined, 2), 2_300, 1, [lane, { ...text, tokens: [...text.tokens] }], { taken: again });
  await task.store(2_310, 'relay-1-aaaaaaaa');
  const ended = { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' } as const;
  await task.record(agent(undefined, 2), 2_320, 4, [{ kind: 'close', lane: 'a' }, ended]);
  await task.record(root, 2_330, 3, [{ kind: 'status', state: 'TASK_STATE_COMPLETED' }]);
  await task.store(4_000, 'relay-2-bbbbbbbb', { at: at(3_900), cause: 'lost' });

  const { hops, relays, gaps, producers, turns, costs, chunkHops, notRecorded } = (await task.trace)!;
  assert.deepEqual(
    hops.map(({ hop, fromMs, toMs, ms, agent: name }) => [hop, fromMs, toMs, ms, name]),
    [
      ['accept', 0, 12, 12, undefined],
      ['work_queue', 12, 20, 8, 'supervisor'],
      ['plan', 20, 35, 15, 'argocd'],
      ['agent_queue', 35, 50, 15, 'argocd'],
      ['agent', 50, 200, 100, 'argocd'],
      ['tool', 60, 100, 40, 'argocd'],
      ['tool', 80, 110, 30, 'argocd'],
    ],
    'the agent without its tools, which overlap by 20 ms',
  );
  assert.deepEqual(
    producers.map(({ id, attempt, takenMs, cause }) => [id, attempt, takenMs, cause]),
    [
      ['supervisor', 1, 20, undefined],
      ['call-1-1', 1, 50, undefined],
      ['call-1-1', 2, 2_200, 'redelivery'],
    ],
  );
  assert.deepEqual(relays, [
    { relay: 'relay-1-aaaaaaaa', fromGeneration: 1, records: 4, fromMs: 10 },
    {
      relay: 'relay-2-bbbbbbbb',
      fromGeneration: 5,
      records: 1,
      fromMs: 4_000,
      takeover: { atMs: 3_900, cause: 'lost' },
    },
  ]);
  assert.deepEqual(
    gaps.map(({ fromMs, toMs, cause }) => [fromMs, toMs, cause]),
    [
      [220, 2_310, 'attempt'],
      [2_310, 4_000, 'takeover'],
    ],
  );
  assert.deepEqual(
    turns.map(({ turn, path }) => [turn, path.slice(-4, -1).map(({ hop, fromMs, toMs }) => [hop, fromMs, toMs])]),
    [
      [
        1,
        [
          ['agent', 2_200, 2_300],
          ['finish', 2_300, 2_320],
          ['publish', 2_320, 4_000],
        ],
      ],
    ],
    'the end of the call and of the task were folded together',
  );
  assert.deepEqual(costs.find(({ hop }) => hop === 'redelivery')?.ms, 2_000);
  assert.deepEqual(
    chunkHops.map(({ hop, count }) => [hop, count]),
    [
      ['publish', 2],
      ['hold', 2],
      ['wait_for_append', 2],
      ['append', 2],
    ],
  );
  assert.deepEqual(notRecorded, ['splice', 'socket', 'webhook']);
});

test('each turn has its hops, and the time during which the task waits for its client is a separate gap', async () => {
  const task = new TracedTask();
  const [one, two] = [agent('agent'), agent('agent', 1, 2)];
  const working = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;
  const asks = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' } as const;
  await task.message(0, 'first', 'agent.argocd');
  await task.store(10, 'x');
  await task.record(one, 20, 1, [working, asks], { taken: { queuedAt: at(12), at: at(18) } });
  await task.store(30, 'x');
  await task.message(5_000, 'second', 'agent.argocd');
  await task.record(two, 5_020, 1, [working], { taken: { queuedAt: at(5_008), at: at(5_015) } });
  await task.store(5_030, 'x');
  const { hops, gaps } = (await task.trace)!;
  assert.deepEqual(
    hops.map(({ hop, turn, fromMs, toMs }) => [hop, turn, fromMs, toMs]),
    [
      ['accept', 1, 0, 12],
      ['work_queue', 1, 12, 18],
      ['agent', 1, 18, 20],
      ['accept', 2, 5_000, 5_008],
      ['work_queue', 2, 5_008, 5_015],
    ],
  );
  assert.deepEqual(gaps, [{ fromMs: 30, toMs: 5_030, generation: 4, cause: 'client' }]);
});

test('each event belongs to the turn that wrote it, even if one record ends an artifact and begins the next turn', async () => {
  const task = new TracedTask();
  const working = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;
  await task.message(0, 'first', 'agent.argocd');
  await task.record(agent('agent'), 20, 1, [working, { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' }]);
  await task.store(30, 'x');
  await task.message(5_000, 'second', 'agent.argocd');
  const text: AgentInput[] = [
    { kind: 'open', lane: 'a', artifact: { name: 'response' } },
    { kind: 'text', lane: 'a', tokens: ['a'] },
  ];
  await task.record(agent('agent', 1, 2), 5_020, 1, [working, ...text]);
  await task.message(5_025, 'third', 'agent.argocd');
  await task.store(5_030, 'x');
  const { events } = (await task.trace)!;
  assert.deepEqual(
    events.map(({ name, turn, last }) => [name, turn, last]),
    [
      ['task', 1, false],
      ['working', 1, false],
      ['input-required', 1, false],
      ['working', 2, false],
      ['response', 2, false],
      ['response', 2, true],
    ],
  );
});

test('the cause of a gap is the activity that took more than half of it: a queue, a tool, text that waited in the relay, or silent producers', async () => {
  const causes: [cause: string, { taken?: [queued: number, at: number]; tool?: [at: number, ms: number]; tokenAt?: number }][] = [
    ['agent', {}],
    ['queue', { taken: [50, 2_400] }],
    ['agent', { taken: [50, 1_000] }],
    ['tool', { tool: [500, 2_000] }],
    ['agent', { tool: [500, 1_000] }],
    ['relay', { tokenAt: 500 }],
    ['agent', { tokenAt: 2_400 }],
  ];
  for (const [cause, { taken = [12, 20], tool, tokenAt = 2_990 }] of causes) {
    const task = new TracedTask();
    await task.message(0, 'm', 'agent.argocd');
    await task.store(10, 'x');
    const from = agent('agent');
    const lane = { kind: 'open', lane: 'a', artifact: { name: 'response' } } as const;
    const text = { kind: 'text', lane: 'a', tokens: ['a'] } as AgentInput;
    const tools = tool === undefined ? [] : [{ name: 'look_up', at: at(tool[0]!), ms: tool[1]! }];
    const measured = { taken: { queuedAt: at(taken[0]!), at: at(taken[1]!) }, tools };
    await task.record(from, tokenAt, 1, [{ kind: 'status', state: 'TASK_STATE_WORKING' }, lane, text], measured);
    await task.store(3_000, 'x');
    const { gaps } = (await task.trace)!;
    assert.deepEqual(
      gaps.map(gap => [gap.fromMs, gap.toMs, gap.cause]),
      [[10, 3_000, cause]],
      `${cause}: ${JSON.stringify({ taken, tool, tokenAt })}`,
    );
  }
});

test('malformed measurements of a producer are ignored', async () => {
  const task = new TracedTask();
  await task.message(0);
  await task.store(10, 'x');
  const working = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;
  const wrong = [{ at: 'soon' }, { at: 1, queuedAt: null }, { at: 1, cause: 'a text of any length' }, 7];
  for (const [index, taken] of wrong.entries())
    await task.record(supervisor(index + 1), 25, 1, [working], {
      taken,
      tools: [{ name: 1 }, null],
      models: [{ model: 1 }, null, 7],
    } as never);
  await task.store(30, 'x');
  const { hops, producers } = (await task.trace)!;
  assert.deepEqual(
    producers.map(({ takenMs, cause, tools, models }) => [takenMs, cause, tools, models]),
    wrong.map(() => [undefined, undefined, [], []]),
  );
  assert.deepEqual(
    hops.map(({ hop }) => hop),
    ['accept'],
  );
});

test('percentiles are values that were measured, not interpolated', () => {
  assert.deepEqual(percentilesOf([3, 1, 2]), { count: 3, p50: 2, p99: 3, max: 3 });
  assert.deepEqual(percentilesOf([]), { count: 0, p50: 0, p99: 0, max: 0 });
});

test('an imported record has no time at which it was stored, because the log knows only when it was imported', async () => {
  const log = createMemoryLog();
  const scenario = new Scenario('t');
  scenario.message('hello');
  const append = { v: 1, facts: scenario.facts, aggregate: scenario.aggregate!, startSeq: 0, startStoredAt: 0 } as const;
  await log.facts.append(append, { expected: 0, id: `t:${IMPORTER}:0` });
  const { facts } = (await readTaskRecords(log, 't'))!;
  assert.deepEqual(
    facts.map(({ seq, storedAt, relay }) => ({ seq, storedAt, relay })),
    [{ seq: 1, storedAt: undefined, relay: undefined }],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, WorkingCall } from '@hopline/events';
import { type InputWriter, LogFull } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { agentPresentation, TRANSPARENT } from '@hopline/profiles';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { type HopMetrics, SPAN, startHop } from '@hopline/telemetry';
import { collect } from '../../../test/kit/collect.ts';
import { until } from '../../../test/kit/until.ts';
import { CALL_CONTENT_BYTES_MAX, CallItems } from './call-items.ts';
import { TurnView } from './turn-view.ts';

const CALL = 'call-1-1';
const ITEM = { role: 'agent.writer', id: `t:${CALL}` };

const working = (text = 'write'): WorkingCall => ({
  call: CALL,
  agent: 'writer',
  presentation: agentPresentation(TRANSPARENT),
  message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }] },
});

/** A supervisor's calls over an in-memory log. The test decides what the relay stores. */
class Turn {
  readonly log = createMemoryLog();
  readonly task = new StoredScenario(this.log.facts, 't');
  readonly view = new TurnView();
  readonly inputs: AgentInput[] = [];
  readonly requests: { role: string; id: string }[] = [];
  readonly planMs: number[] = [];
  readonly items: CallItems;
  readonly #request = this.log.work.request.bind(this.log.work);
  #applied = 0;

  constructor(attempt = 1) {
    this.log.work.request = async (role, item, options) => {
      this.requests.push({ role, id: options.id });
      return this.#request(role, item, options);
    };
    this.items = new CallItems({
      log: this.log,
      job: { work: workItem(), attempt },
      view: this.view,
      writer: { add: (input: AgentInput) => void this.inputs.push(input) } as unknown as InputWriter,
      waits: { begin() {} },
      hop: startHop(SPAN.processWork, { kind: 'consumer', parent: {}, attributes: {} }),
      takenAt: 0,
      metrics: { hopDuration: { recordMs: (ms: number) => void this.planMs.push(ms) } } as unknown as HopMetrics,
      logger: { info() {} },
    });
  }

  async begun(): Promise<this> {
    await this.task.message('write', 'm', 'supervisor', 'transparent').store();
    return this.read();
  }

  /** The relay stores the call, and the supervisor reads its fact. */
  async stored(call: AgentInput): Promise<this> {
    await this.task.input(supervisor(), call as Extract<AgentInput, { kind: 'call' }>).store();
    return this.read();
  }

  async read(): Promise<this> {
    const records = await collect(this.log.facts.read('t', 1));
    for (const record of records.slice(this.#applied)) this.view.apply(record);
    this.#applied = records.length;
    return this;
  }
}

test('a supervisor stores a call with the content of its work, and the relay that stores it queues the work', async () => {
  const turn = await new Turn().begun();
  turn.items.begin(working());
  const { call, agent, ...content } = working();
  assert.deepEqual(turn.inputs, [{ kind: 'call', call, agent, statusPasses: true, ...content }]);
  await turn.stored(turn.inputs[0]!);
  await turn.items.queueCallsWithoutContent();
  assert.deepEqual(turn.requests, []);
  assert.deepEqual(turn.planMs, [turn.view.started(CALL)!.at], 'the hop to the stored call');
});

test('the supervisor queues the work of a call that a relay of an earlier version stores, once', async () => {
  const turn = await new Turn().begun();
  turn.items.begin(working());
  await turn.items.queueCallsWithoutContent();
  assert.deepEqual(turn.requests, [], 'store before work');
  await turn.stored({ kind: 'call', call: CALL, agent: 'writer' });
  await Promise.all([turn.items.queueCallsWithoutContent(), turn.items.queueCallsWithoutContent()]);
  await turn.items.queueCallsWithoutContent();
  assert.deepEqual(turn.requests, [ITEM]);
});

test('content of CALL_CONTENT_BYTES_MAX bytes is stored with its call; with one byte more the supervisor queues the work itself', async () => {
  const { call: _call, agent: _agent, ...content } = working('');
  const text = 'x'.repeat(CALL_CONTENT_BYTES_MAX - Buffer.byteLength(JSON.stringify(content)));
  for (const [more, isHeld] of [
    ['', true],
    ['x', false],
  ] as const) {
    const turn = await new Turn().begun();
    turn.items.begin(working(text + more));
    await turn.stored(turn.inputs[0]!);
    await turn.items.queueCallsWithoutContent();
    assert.equal('message' in turn.inputs[0]!, isHeld);
    assert.deepEqual(turn.requests, isHeld ? [] : [ITEM]);
  }
});

test('a supervisor that takes over queues the work of a call only if no relay does and the queue lacks the item', async () => {
  const { call, agent, ...content } = working();
  for (const isHeld of [true, false])
    for (const isQueued of [true, false])
      for (const hasWritten of [true, false]) {
        const turn = await new Turn(2).begun();
        await turn.stored({ kind: 'call', call, agent, ...(isHeld && content) });
        if (hasWritten) turn.view.aggregate!.producers[call] = { attempt: 1, n: 1 };
        if (isQueued) await turn.log.work.request('agent.writer', workItem(), { id: 'first' });
        turn.requests.length = 0;
        turn.items.begin(working());
        await turn.items.queueCallsWithoutContent();
        assert.deepEqual(turn.inputs, [], 'the call is stored');
        assert.deepEqual(turn.requests, isHeld || isQueued || hasWritten ? [] : [ITEM]);
        assert.deepEqual(turn.planMs, []);
      }
});

test('a lost item is queued again once, if the queue has room and the agent has written nothing', async () => {
  const turn = await new Turn().begun();
  assert.equal(await turn.items.queueLost(CALL), true, 'a call that this supervisor has not reached');
  turn.items.begin(working());
  await turn.stored(turn.inputs[0]!);
  const { request } = turn.log.work;
  turn.log.work.request = async () => Promise.reject(new LogFull('full'));
  await assert.rejects(turn.items.queueLost(CALL), LogFull);
  turn.log.work.request = request;
  assert.deepEqual([await turn.items.queueLost(CALL), turn.requests], [true, [ITEM]]);
  assert.deepEqual([await turn.items.queueLost(CALL), turn.requests], [false, [ITEM]]);

  const other = await new Turn().begun();
  other.items.begin(working());
  await other.stored(other.inputs[0]!);
  other.view.aggregate!.producers[CALL] = { attempt: 1, n: 1 };
  assert.deepEqual([await other.items.queueLost(CALL), other.requests], [false, []]);
});

test('an item that is queued again is the only one, whether its relay was stopped or the queue lost the item', async () => {
  for (const isLost of [false, true]) {
    const turn = await new Turn().begun();
    turn.items.begin(working());
    await turn.stored(turn.inputs[0]!);
    const { work } = turn.log;
    const taken: string[] = [];
    const stop = new AbortController();
    const request = () => work.request('agent.writer', workItem(), { id: ITEM.id });
    if (isLost) {
      await request();
      // Settles an item silently, like a server that loses the item and still knows its id.
      const loses = new AbortController();
      const lost = work.take('agent.writer', { slots: 1, signal: loses.signal }, async () => loses.abort());
      await lost;
    }
    assert.equal(await turn.items.queueLost(CALL), true);
    // The request of the relay that was stopped arrives now.
    await request();
    const taking = work.take('agent.writer', { slots: 1, signal: stop.signal }, async job => void taken.push(job.work.taskId));
    await until(async () => taken.length > 0 && !(await work.hasItem('agent.writer', 't')), 'the end of all items');
    stop.abort();
    await taking;
    assert.deepEqual(taken, ['t'], `lost: ${isLost}`);
  }
});

function workItem() {
  return { v: 1 as const, taskId: 't', contextId: 'c1', turn: 1, profile: 'transparent', message: working().message };
}

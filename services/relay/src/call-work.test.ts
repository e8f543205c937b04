import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { AgentInput, CallContent, Role, TaskAggregate, TraceCarrier, Work } from '@hopline/events';
import { InputWriter } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { until } from '../../../test/kit/until.ts';
import { COALESCE, relayOn } from './relay.test-kit.ts';
import type { Relay } from './relay.ts';

const TRACE = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
const CONTENT: CallContent = {
  presentation: {
    text: { as: 'own', artifact: { name: 'response' } },
    progress: 'status',
    notices: {
      start: { name: 's', description: '', text: '' },
      end: { name: 'e', description: '', text: '' },
      failed: { name: 'f', description: '', text: '' },
    },
  },
  message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'write' }], metadata: { skill: 'prose' } },
  metadata: { tone: 'dry' },
  resume: { contextId: 'theirs' },
  trace: TRACE,
};

type Request = { role: Role; work: Work; id: string; trace: TraceCarrier | undefined };

/** One task for the supervisor, the inputs of its producers, and the requests of relays. */
class Calls {
  readonly log = createMemoryLog({ shards: 1 });
  /** The relays' requests for the work of calls. */
  readonly requests: Request[] = [];
  readonly #context: TestContext;
  #marks = 0;

  constructor(context: TestContext) {
    this.#context = context;
  }

  async send(role: Role = 'supervisor'): Promise<void> {
    const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hello' }] };
    const input = { kind: 'message', message, contextId: 'c', role, profile: 'caipe', owner: { subject: 'me' } } as const;
    await this.log.inputs.append('t', { v: 1, at: Date.now(), from: 'client', input }, { id: 't:msg' });
  }

  writer(id = 'supervisor', agent = 'supervisor', attempt = 1): InputWriter {
    return new InputWriter(this.log.inputs, { taskId: 't', producer: { id, agent, turn: 1, item: 1, attempt } });
  }

  call(call: string, more: Partial<CallContent> = CONTENT): AgentInput {
    return { kind: 'call', call, agent: 'writer', ...more };
  }

  /**
   * A relay without a checkpoint, which therefore reads every input again. `queues`: whether its requests for the work of calls reach the
   * queue.
   */
  async relay({ queues = true, windowMs = 60_000 } = {}): Promise<Relay> {
    await this.log.leases.delete('shard.0');
    const processLog = this.log.another();
    const request = processLog.work.request.bind(processLog.work);
    processLog.work.request = async (role, work, { id, trace }) => {
      if (work.call !== undefined) this.requests.push({ role, work, id, trace });
      if (work.call !== undefined && !queues) return { duplicate: false };
      return request(role, work, { id, ...(trace && { trace }) });
    };
    Object.assign(processLog.work, { duplicateWindowMs: windowMs });
    const relay = await relayOn(processLog, { coalesce: { ...COALESCE, eventCostMs: 80 } });
    this.#context.after(() => relay.stop());
    return relay;
  }

  async reached(condition: (aggregate: TaskAggregate) => boolean): Promise<TaskAggregate> {
    return until(async () => {
      const aggregate = (await this.log.facts.last('t'))?.record.aggregate;
      return aggregate !== undefined && condition(aggregate) && aggregate;
    }, `a task with ${condition}`);
  }

  /** The ids that the next relay requests (at least `count` of them) before it has folded an input that follows all others. */
  async requestedBy(relay: Promise<Relay>, count: number): Promise<string[]> {
    this.requests.length = 0;
    const running = await relay;
    this.#marks += 1;
    const out = this.writer('supervisor', 'supervisor', 1 + this.#marks);
    out.add({ kind: 'step', step: `mark ${this.#marks}`, payload: null });
    await this.reached(({ steps = 0 }) => steps >= this.#marks && this.requests.length >= count);
    await running.stop();
    return this.requests.map(({ id }) => id).sort();
  }
}

test('the relay that stores a call queues its work, below the span of the supervisor', async t => {
  const task = new Calls(t);
  await task.relay();
  await task.send();
  const out = task.writer();
  out.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  out.add(task.call('call-1-1'));
  await out.flush();
  await task.reached(({ calls }) => calls['call-1-1'] !== undefined);
  await until(() => task.log.work.hasItem('agent.writer', 't'));
  const [request, ...others] = task.requests;
  assert.deepEqual(others, []);
  const { newest, queuedAt, ...work } = request!.work;
  const { presentation, message, metadata, resume } = CONTENT;
  const call = { id: 'call-1-1', presentation, resume };
  assert.deepEqual(work, {
    v: 1,
    taskId: 't',
    contextId: 'c',
    turn: 1,
    profile: 'caipe',
    call,
    message,
    metadata,
    owner: { subject: 'me' },
  });
  const started = newest?.record.facts.find(fact => fact.kind === 'call.started');
  assert.deepEqual(started, { kind: 'call.started', at: queuedAt, call: 'call-1-1', agent: 'writer', ...CONTENT });
  assert.deepEqual([request!.role, request!.id, request!.trace], ['agent.writer', 't:call-1-1', TRACE]);
});

test('a relay does not queue the work of a call that is stored without content or that an agent began', async t => {
  const task = new Calls(t);
  const { presentation, message } = CONTENT;
  for (const [index, more] of [{}, { presentation }, { message }].entries()) {
    const relay = task.relay();
    if (index === 0) await task.send();
    const out = task.writer('supervisor', 'supervisor', index + 1);
    out.add(task.call(`call-1-${index}`, more));
    await out.flush();
    await task.reached(({ calls }) => calls[`call-1-${index}`] !== undefined);
    await (await relay).stop();
  }
  assert.deepEqual(task.requests, []);

  const direct = new Calls(t);
  const relay = await direct.relay();
  await direct.send('agent.echo');
  const out = direct.writer('agent', 'echo');
  out.add(direct.call('call-1-1'));
  out.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
  await out.flush();
  const { calls } = await direct.reached(({ state }) => state === 'TASK_STATE_COMPLETED');
  assert.deepEqual(calls, { 'call-1-1': { agent: 'writer' } });
  await relay.stop();
  assert.deepEqual(direct.requests, []);
});

test('a call to an agent with an invalid name fails only its task', async t => {
  const task = new Calls(t);
  const relay = await task.relay();
  await task.send();
  const out = task.writer();
  out.add({ ...CONTENT, kind: 'call', call: 'call-1-1', agent: 'No Name' });
  await out.flush();
  await task.reached(({ state }) => state === 'TASK_STATE_FAILED');
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hello' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe' } as const;
  await task.log.inputs.append('other', { v: 1, at: Date.now(), from: 'client', input }, { id: 'other:msg' });
  await until(async () => (await task.log.facts.last('other')) !== undefined, 'the other task of the shard is created');
  await relay.stop();
});

test('a relay that reads a call again requests its work once more, unless its agent has written or the task has ended', async t => {
  const task = new Calls(t);
  const dead = await task.relay({ queues: false });
  await task.send();
  const out = task.writer();
  for (const call of ['call-1-1', 'call-1-2', 'call-1-3']) out.add(task.call(call));
  await out.flush();
  await task.reached(({ calls }) => calls['call-1-3'] !== undefined);
  await dead.stop();
  const written = task.writer('call-1-2', 'writer');
  written.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  // The supervisor abandons a silent agent.
  out.add({ kind: 'ended', call: 'call-1-3', state: 'TASK_STATE_FAILED', reason: 'gone' });
  await Promise.all([written.flush(), out.flush()]);
  // The relay reads the calls again before it folds the newer inputs.
  assert.deepEqual(await task.requestedBy(task.relay(), 3), ['t:call-1-1', 't:call-1-2', 't:call-1-3']);
  assert.deepEqual(await task.requestedBy(task.relay(), 1), ['t:call-1-1']);

  await task.log.inputs.append('t', { v: 1, at: Date.now(), from: 'client', input: { kind: 'cancel' } }, { id: 't:cancel' });
  await task.relay();
  await task.reached(({ state }) => state === 'TASK_STATE_CANCELED');
  const last = await task.relay();
  task.requests.length = 0;
  await new Promise(resolve => setTimeout(resolve, 100));
  await last.stop();
  assert.deepEqual(task.requests, []);
});

test('after the duplicate window the work of a silent agent is requested again only when the queue has lost its item', async t => {
  const task = new Calls(t);
  const first = await task.relay();
  await task.send();
  const out = task.writer();
  out.add(task.call('call-1-1'));
  await out.flush();
  await task.reached(({ calls }) => calls['call-1-1'] !== undefined);
  await until(() => task.log.work.hasItem('agent.writer', 't'));
  await first.stop();
  assert.deepEqual(await task.requestedBy(task.relay({ windowMs: 0 }), 0), []);
  assert.deepEqual(await task.requestedBy(task.relay(), 1), ['t:call-1-1'], 'within the window it is a repetition');
  const stop = new AbortController();
  const taking = task.log.work.take('agent.writer', { slots: 1, signal: stop.signal }, async () => stop.abort());
  await taking;
  assert.deepEqual(await task.requestedBy(task.relay({ windowMs: 0 }), 1), ['t:call-1-1']);
});

test('the next relay requests a call again even if earlier text that still waits keeps the call’s record from counting as folded', async t => {
  const task = new Calls(t);
  const dead = await task.relay({ queues: false });
  await task.send();
  const out = task.writer();
  out.add(task.call('call-1-1'));
  await out.flush();
  await task.reached(({ calls }) => calls['call-1-1'] !== undefined);
  const text = task.writer('call-1-1', 'writer');
  text.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
  // Half of a surrogate pair waits for the other half.
  text.token('a', '\ud83d');
  await text.flush();
  out.add(task.call('call-1-2'));
  await out.flush();
  const { foldedSeq } = await task.reached(({ calls }) => calls['call-1-2'] !== undefined);
  assert.ok(foldedSeq < out.lastSeq!, `${foldedSeq} of ${out.lastSeq}`);
  await dead.stop();
  task.requests.length = 0;
  const next = await task.relay();
  await until(() => task.requests.length > 0);
  assert.deepEqual(
    task.requests.map(({ id }) => id),
    ['t:call-1-2'],
  );
  await next.stop();
});

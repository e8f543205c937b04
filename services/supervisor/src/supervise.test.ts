import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Message, TaskState } from '@hopline/a2a';
import type { ChatMessage, ChatModel } from '@hopline/chat-model';
import { type CallContent, INPUT_DEPTH_MAX, shardOf, type Work } from '@hopline/events';
import { LiveAgents, LogUnavailable, QueueWaits, Requeued, Superseded } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { agentPresentation, PROFILES, TRANSPARENT } from '@hopline/profiles';
import { agent, StoredScenario, supervisor } from '@hopline/task/test-kit';
import { createHopMetrics, createLogger } from '@hopline/telemetry';
import { until, untilTick } from '../../../test/kit/until.ts';
import { AGENT_GONE } from './gone-agents.ts';
import type { ModelSettings } from './model-turn.ts';
import { SkillPlanner } from './skill-planner.ts';
import { supervise } from './supervise.ts';

const message: Message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'version?' }] };
const login: Message = { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'Log in.' }] };

/** One task in the in-memory log, with a minimal relay. */
class Relayed implements Disposable {
  readonly log = createMemoryLog();
  readonly task = new StoredScenario(this.log.facts, 't');
  readonly #stop = new AbortController();

  get states(): TaskState[] {
    return this.task.facts.flatMap(fact => (fact.kind === 'status.changed' ? [fact.event.statusUpdate.status.state] : []));
  }

  hasLane(name: string): boolean {
    return this.task.facts.some(fact => fact.kind === 'artifact.updated' && fact.lane === name);
  }

  /** Relays inputs of supervisors from now on. */
  relay(): void {
    (async () => {
      for await (const { record } of this.log.inputs.readShard(shardOf('t', this.log.layouts), 1, this.#stop.signal)) {
        if (record.from === 'client' || record.from === 'relay') continue;
        const { from, inputs } = record;
        for (const input of inputs) {
          if (input.kind !== 'text') await this.task.input(from, input).store();
          else await this.task.text(from, input.lane, input.tokens.join('')).store();
        }
      }
    })();
  }

  async supervise(
    attempt: number,
    model?: ModelSettings,
    { profile = 'caipe', agentGoneMs = 60_000, followed = async (_agents: LiveAgents) => {} } = {},
  ): Promise<void> {
    const work: Work = { v: 1, taskId: 't', contextId: 'c1', turn: 1, profile, message };
    const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });
    const metrics = createHopMetrics('supervisor');
    const { signal } = this.#stop;
    const agents = new LiveAgents(() => performance.now());
    await agents.follow(this.log.agents, signal, () => {});
    await followed(agents);
    const waits = new QueueWaits({ work: this.log.work, onWaiting() {}, now: () => performance.now() });
    const around = { planner: new SkillPlanner(), model, agents, profiles: PROFILES, displayName: 'P', agentGoneMs };
    await supervise(
      { log: this.log, ...around, waits, metrics, logger, signal },
      { work, item: 1, attempt, requeues: 0, exhausted: false },
    );
  }

  stop(): void {
    this.#stop.abort();
  }

  [Symbol.dispose](): void {
    this.stop();
  }
}

/** A task whose supervisor called one agent, which waits for credentials, and then died. */
async function waitingForCredentials(
  call: string,
  before: (task: StoredScenario) => unknown = () => {},
  profile = 'caipe',
  content: Partial<CallContent> = {},
): Promise<Relayed> {
  const relayed = new Relayed();
  const { task } = relayed;
  await task.message('version?', 'm', 'supervisor', profile).store();
  await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
  await before(task);
  await task.input(supervisor(), { kind: 'call', call, agent: 'argocd', ...content }).store();
  await task.input(agent(call), { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message: login }).store();
  return relayed;
}

test('a supervisor that takes over does not hide that an agent waits for credentials [S3-5]', async () => {
  using relayed = await waitingForCredentials('call-1-1');
  relayed.relay();
  const supervised = relayed.supervise(2);
  // The notice comes after the state.
  await untilTick(() => relayed.hasLane('1/call-1-1/start'));
  assert.deepEqual(relayed.states, ['TASK_STATE_WORKING', 'TASK_STATE_AUTH_REQUIRED']);
  await relayed.task.input(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
  await relayed.task.input(agent(), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' }).store();
  await supervised;
  assert.deepEqual(relayed.states.slice(2), ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']);
});

test('an agent that is gone while it waits for credentials is abandoned, and its task continues [S3-5]', async () => {
  const call = 'call-1-1-0';
  const chosen = { id: 'x', name: 'argocd', args: { request: 'go' }, call, agent: 'argocd' };
  const step = { turn: 1, text: '', calls: [chosen], read: [] };
  using relayed = await waitingForCredentials(call, task =>
    task.input(supervisor(), { kind: 'step', step: '1', payload: step }).store(),
  );
  await relayed.log.agents.create('files', { name: 'files', url: 'http://x/', description: 'Files', skills: [], heartbeat: 1 });
  relayed.relay();
  let asked: readonly ChatMessage[] = [];
  let shown: TaskState | undefined;
  const model: ChatModel = {
    async *step({ messages }) {
      asked = messages;
      shown = relayed.states.at(-1);
      yield [{ type: 'text', text: 'It is gone.' }];
      return { text: 'It is gone.', calls: [] };
    },
  };
  await relayed.supervise(2, { model, stepsMax: 4, sumsUp: true }, { agentGoneMs: 1 });
  assert.equal(asked.at(-1)?.text, '[the agent failed: the agent is gone]');
  assert.equal(shown, 'TASK_STATE_WORKING');
  const states = ['TASK_STATE_WORKING', 'TASK_STATE_AUTH_REQUIRED', 'TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'];
  assert.deepEqual(relayed.states, states);
});

test('a supervisor waits for a task that the log has lost until a relay has stored it again', async () => {
  using relayed = new Relayed();
  relayed.relay();
  const supervised = relayed.supervise(2);
  const requeues = assert.rejects(supervised, Requeued);
  for (let turns = 0; turns < 10; turns += 1) await setImmediate();
  await relayed.task.message('version?', 'm', 'supervisor', 'caipe').store();
  await untilTick(() => relayed.states.includes('TASK_STATE_WORKING'));
  relayed.stop();
  await requeues;
});

test('a stopped supervisor requeues its work; one whose log fails rejects with that error', async () => {
  {
    using relayed = await waitingForCredentials('call-1-1');
    relayed.relay();
    const supervised = relayed.supervise(2);
    const requeues = assert.rejects(supervised, Requeued);
    await untilTick(() => relayed.hasLane('1/call-1-1/start'));
    relayed.stop();
    await requeues;
  }
  using relayed = await waitingForCredentials('call-1-1');
  const away = new Error('away');
  relayed.log.inputs.append = async () => Promise.reject(away);
  await assert.rejects(relayed.supervise(2), away);
});

test('a supervisor that takes over queues a call again only if no relay does so and the agent has written nothing [S0-1]', async () => {
  const content = { presentation: agentPresentation(TRANSPARENT), message };
  for (const { held, hasWritten } of [
    { held: {}, hasWritten: false },
    { held: {}, hasWritten: true },
    { held: content, hasWritten: false },
  ]) {
    const write = (task: StoredScenario) => {
      if (hasWritten) task.aggregate!.producers = { 'call-1-1': { attempt: 1, n: 1 } };
    };
    using relayed = await waitingForCredentials('call-1-1', write, 'caipe', held);
    const { task, log } = relayed;
    const queued: string[] = [];
    log.work.request = async (_role, _work, { id }) => {
      queued.push(id);
      return { duplicate: false };
    };
    relayed.relay();
    const supervised = relayed.supervise(2);
    await untilTick(() => relayed.hasLane('1/call-1-1/start'));
    await task.input(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
    await task.input(agent(), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' }).store();
    await supervised;
    assert.deepEqual(queued, hasWritten || held === content ? [] : ['t:call-1-1']);
  }
});

test('a turn ends with the last of its agents, and an agent that failed earlier does not make it fail', async () => {
  using relayed = new Relayed();
  const { task } = relayed;
  await task.message('version?', 'm', 'supervisor').store();
  await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
  await task.input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' }).store();
  await task.input(supervisor(), { kind: 'call', call: 'call-1-2', agent: 'files' }).store();
  relayed.relay();
  const supervised = relayed.supervise(2);
  await untilTick(() => relayed.hasLane('1/call-1-2/start'));
  await task.input(agent('call-1-1'), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_FAILED', reason: 'x' }).store();
  await untilTick(() => relayed.hasLane('1/call-1-1/end'));
  const files = { ...agent('call-1-2'), agent: 'files' };
  await task.input(files, { kind: 'ended', call: 'call-1-2', state: 'TASK_STATE_COMPLETED' }).store();
  await supervised;
  assert.deepEqual(relayed.states, ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']);
});

test('the notice of a rejected call shows the rejection, and the task is rejected', async () => {
  using relayed = await waitingForCredentials('call-1-1');
  const { task } = relayed;
  relayed.relay();
  const supervised = relayed.supervise(2);
  await untilTick(() => relayed.hasLane('1/call-1-1/start'));
  await task.input(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
  await task.input(agent(), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_REJECTED', reason: 'no' }).store();
  await supervised;
  const notice = task.facts.find(fact => fact.kind === 'artifact.updated' && fact.lane === '1/call-1-1/end');
  const parts = notice?.kind === 'artifact.updated' && notice.event.artifactUpdate.artifact.parts;
  assert.deepEqual(parts, [{ text: '❌ Supervisor: Argocd rejected the message\n' }]);
  assert.equal(relayed.states.at(-1), 'TASK_STATE_REJECTED');
});

test('if the other stored item of a turn has written first, the turn is left to that item', async () => {
  using relayed = await waitingForCredentials('call-1-1');
  relayed.task.aggregate!.producers = { supervisor: { item: 2, attempt: 1, n: 1 } };
  await relayed.task.input(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
  const inputs: unknown[] = [];
  relayed.log.inputs.append = async (_taskId, record) => ({ seq: inputs.push(record), duplicate: false });
  await relayed.supervise(1);
  assert.deepEqual(inputs, []);
});

test('a superseded supervisor ends, and leaves the item to the newer attempt, unless the task has ended', async () => {
  for (const hasEnded of [false, true]) {
    using relayed = await waitingForCredentials('call-1-1');
    relayed.task.aggregate!.producers = { supervisor: { item: 1, attempt: 2, n: 1 } };
    await relayed.task.input(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
    if (hasEnded) await relayed.task.cancel().store();
    const inputs: unknown[] = [];
    relayed.log.inputs.append = async (_taskId, record) => ({ seq: inputs.push(record), duplicate: false });
    const supervised = relayed.supervise(1);
    if (hasEnded) await supervised;
    else await assert.rejects(supervised, Superseded);
    assert.deepEqual(inputs, []);
  }
});

test('if the next input of a turn nests too deep for the log, its task fails with that reason at the first attempt', async () => {
  using relayed = await waitingForCredentials('call-1-1', () => {}, 'transparent');
  const { task } = relayed;
  const data: unknown = JSON.parse('['.repeat(INPUT_DEPTH_MAX) + ']'.repeat(INPUT_DEPTH_MAX));
  const deep: Message = { messageId: 'deep', role: 'ROLE_AGENT', parts: [{ data }] };
  await task.input(agent(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
  await task.input(agent(), { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED', message: deep }).store();
  relayed.relay();
  await relayed.supervise(1, undefined, { profile: 'transparent' });
  assert.equal(relayed.states.at(-1), 'TASK_STATE_FAILED');
  const status = task.facts.findLast(fact => fact.kind === 'status.changed');
  const reason = `an input of kind "status" nests deeper than ${INPUT_DEPTH_MAX} levels of JSON`;
  assert.deepEqual(status?.event.statusUpdate.metadata, { reason, retryable: false });
});

for (const profile of ['caipe', 'transparent', 'aion']) {
  test(`in profile ${profile} without a model, a call whose agent is gone is abandoned, but not while the log is away`, async () => {
    using relayed = await waitingForCredentials('call-1-1', () => {}, profile);
    const { log } = relayed;
    let checks = 0;
    log.check = async () => {
      checks += 1;
      if (checks <= 2) throw new Error('away');
    };
    relayed.relay();
    await relayed.supervise(2, undefined, { profile, agentGoneMs: 1 });
    const ended = relayed.task.facts.find(fact => fact.kind === 'call.ended');
    assert.deepEqual([ended?.state, ended?.reason, ended?.retryable], ['TASK_STATE_FAILED', AGENT_GONE, true]);
    assert.equal(relayed.states.at(-1), 'TASK_STATE_FAILED');
    assert.equal(checks, 3, 'the time begins again when the log is back');
  });
}

for (const profile of ['caipe', 'transparent']) {
  test(`in profile ${profile} a question for the default agent waits while that agent restarts, and does not go to a live agent`, async () => {
    using relayed = new Relayed();
    const { task, log } = relayed;
    await task.message('explain hopline', 'm', 'supervisor', profile).store();
    const entry = { url: 'http://x/', description: 'An agent', skills: [], heartbeat: 1 };
    await log.agents.create('guide.1', { ...entry, name: 'guide', default: true });
    await log.agents.create('files.1', { ...entry, name: 'files' });
    const followed = async (agents: LiveAgents) => {
      await log.agents.delete('guide.1');
      await untilTick(() => !agents.isLive('guide'));
    };
    log.work.ahead = async () => 0;
    relayed.relay();
    const supervised = relayed.supervise(1, undefined, { profile, followed, agentGoneMs: 1_500 });
    await until(() => JSON.stringify(task.facts).includes('⏳ Agent Guide is not available yet.'));
    await supervised;
    const calls = task.facts.flatMap(fact => (fact.kind === 'call.started' ? [fact.agent] : []));
    assert.deepEqual(calls, ['guide']);
    const status = task.facts.findLast(fact => fact.kind === 'status.changed')?.event.statusUpdate;
    assert.equal(status?.status.state, 'TASK_STATE_FAILED');
    assert.equal(status?.metadata?.retryable, true);
    assert.match(String(status?.metadata?.reason), /the agent is gone$/);
  });
}

test('a turn whose notice cannot be stored is requeued, and the process goes on', { timeout: 120_000 }, async t => {
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', onUnhandled);
  t.after(() => process.off('unhandledRejection', onUnhandled));
  using relayed = new Relayed();
  const { task, log } = relayed;
  await task.message('version?', 'm', 'supervisor', 'caipe').store();
  await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
  await task.input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' }).store();
  await log.agents.create('argocd.1', { name: 'argocd', url: 'http://x/', description: 'An agent', skills: [], heartbeat: 1 });
  const places = [5, 5];
  log.work.ahead = async () => places.shift() ?? 1;
  relayed.relay();
  const supervised = relayed.supervise(2);
  await untilTick(() => relayed.hasLane('1/call-1-1/start'));
  log.inputs.append = async () => {
    throw new LogUnavailable('away');
  };
  await Promise.race([
    assert.rejects(supervised, LogUnavailable),
    until(() => unhandled.length > 0).then(() => assert.fail('an unhandled rejection would end the process')),
  ]);
});

test('in profile `chat` a supervisor that takes over repeats no status, and withheld text becomes the only answer', async () => {
  using relayed = new Relayed();
  const { task } = relayed;
  await task.message('version?', 'm', 'supervisor', 'chat').store();
  const progress = (lane: string) => ({ messageId: `${lane}-t`, role: 'ROLE_AGENT' as const, parts: [{ text: lane }] });
  for (const message of [undefined, progress('1/plan')])
    await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING', ...(message && { message }) }).store();
  const entry = { name: 'argocd', url: 'http://x/', description: 'Argo CD', skills: [], heartbeat: 1 };
  await relayed.log.agents.create('argocd', entry);
  relayed.relay();
  const supervised = relayed.supervise(2, undefined, { profile: 'chat' });
  const messages = () =>
    task.facts.flatMap(fact => (fact.kind === 'status.changed' ? (fact.event.statusUpdate.status.message?.messageId ?? []) : []));
  await untilTick(() => messages().includes('1/call-1-1/start-t'));
  const ended = { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED', withheldText: 'v2.9' } as const;
  await task.input(agent('call-1-1'), ended).store();
  await supervised;
  assert.deepEqual(messages(), ['1/plan-t', '1/call-1-1/start-t', '1/call-1-1/end-t']);
  const shown = task.facts.flatMap(fact => (fact.kind === 'artifact.updated' ? [fact.event.artifactUpdate.artifact] : []));
  assert.deepEqual(
    shown.map(({ name, parts }) => [name, parts]),
    [['response', [{ text: 'v2.9' }]]],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Message, TaskState } from '@hopline/a2a';
import type { ChatMessage, ChatModel } from '@hopline/chat-model';
import { type AgentInput, type Producer, shardOf, type TaskAggregate, type Work } from '@hopline/events';
import { LiveAgents, Requeued } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { PROFILES } from '@hopline/profiles';
import { type Command, decide, evolve } from '@hopline/task';
import { createHopMetrics, createLogger } from '@hopline/telemetry';
import type { ModelSettings } from './model-turn.ts';
import { SkillPlanner } from './skill-planner.ts';
import { supervise } from './supervise.ts';

const message: Message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'version?' }] };
const login: Message = { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'Log in.' }] };

/** One task in the in-memory log, with a minimal relay. */
class Relayed implements Disposable {
  readonly log = createMemoryLog();
  readonly states: TaskState[] = [];
  readonly lanes: string[] = [];
  #aggregate: TaskAggregate | undefined;
  #seq = 0;
  readonly #stop = new AbortController();

  async decide(item: Command): Promise<void> {
    const { facts } = decide(this.#aggregate, item, Date.now());
    if (facts.length === 0) return;
    for (const fact of facts) {
      this.#aggregate = evolve(this.#aggregate, fact);
      if (fact.kind === 'artifact.updated') this.lanes.push(fact.lane);
      if (fact.kind === 'status.changed') this.states.push(fact.event.statusUpdate.status.state);
    }
    const start = { startSeq: this.#seq === 0 ? 0 : 1, startStoredAt: 0 };
    const record = { v: 1 as const, facts, aggregate: this.#aggregate!, ...start };
    this.#seq = (await this.log.facts.append(record, { expected: this.#seq, id: String(this.#seq) })).seq;
  }

  appends(id: string, input: Exclude<AgentInput, { kind: 'text' }>): Promise<void> {
    const from: Producer = { id, agent: id, turn: 1, attempt: 1 };
    return this.decide({ kind: 'agent', from, input });
  }

  /** Relays inputs of supervisors from now on. */
  relay(): void {
    (async () => {
      for await (const { record } of this.log.inputs.readShard(shardOf('t', this.log.shards), 1, this.#stop.signal)) {
        if (record.from === 'client' || record.from === 'relay') continue;
        const { from, n } = record;
        const chunk = { firstSeq: 1, lastSeq: 1, count: 1, n, reason: 'test', heldMs: 0, firstAt: 0, lastAt: 0 };
        for (const input of record.inputs) {
          if (input.kind !== 'text') await this.decide({ kind: 'agent', from, input });
          else await this.decide({ kind: 'run', from, lane: input.lane, text: input.tokens.join(''), last: false, n, chunk });
        }
      }
    })();
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await setImmediate();
  }

  async supervise(attempt: number, model?: ModelSettings): Promise<void> {
    const work: Work = { v: 1, taskId: 't', contextId: 'c', turn: 1, profile: 'caipe', message };
    const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });
    const metrics = createHopMetrics('supervisor');
    const { signal } = this.#stop;
    const agents = new LiveAgents(() => performance.now());
    await agents.follow(this.log.agents, signal, () => {});
    const around = { planner: new SkillPlanner(), model, agents, profiles: PROFILES, displayName: 'P' };
    await supervise({ log: this.log, ...around, metrics, logger, signal }, { work, attempt, requeues: 0, exhausted: false });
  }

  stop(): void {
    this.#stop.abort();
  }

  [Symbol.dispose](): void {
    this.stop();
  }
}

/** The supervisor has called one agent, which waits for credentials; then the supervisor has died. */
async function waitingForCredentials(call: string, before: (task: Relayed) => Promise<void> = async () => {}): Promise<Relayed> {
  const task = new Relayed();
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe' } as const;
  await task.decide({ kind: 'client', taskId: 't', input });
  await task.appends('supervisor', { kind: 'status', state: 'TASK_STATE_WORKING' });
  await before(task);
  await task.appends('supervisor', { kind: 'call', call, agent: 'argocd' });
  await task.appends(call, { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message: login });
  return task;
}

test('a supervisor that takes over does not hide that an agent waits for credentials [S3-5]', async () => {
  using task = await waitingForCredentials('call-1-1');
  task.relay();
  const supervised = task.supervise(2);
  // The notice follows the state.
  await task.until(() => task.lanes.includes('1/call-1-1/start'));
  assert.deepEqual(task.states, ['TASK_STATE_WORKING', 'TASK_STATE_AUTH_REQUIRED']);
  await task.appends('call-1-1', { kind: 'status', state: 'TASK_STATE_WORKING' });
  await task.appends('call-1-1', { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_COMPLETED' });
  await supervised;
  assert.deepEqual(task.states.slice(2), ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']);
});

test('an agent that is gone while it waits for credentials is abandoned, and its task goes on [S3-5]', async () => {
  const call = 'call-1-1-0';
  const chosen = { id: 'x', name: 'argocd', args: { request: 'go' }, call, agent: 'argocd' };
  const step = { turn: 1, text: '', calls: [chosen], read: [] };
  using task = await waitingForCredentials(call, story =>
    story.appends('supervisor', { kind: 'step', step: '1', payload: step }),
  );
  await task.log.agents.create('files', { name: 'files', url: 'http://x/', description: 'Files', skills: [], heartbeat: 1 });
  task.relay();
  let asked: readonly ChatMessage[] = [];
  let shown: TaskState | undefined;
  const model: ChatModel = {
    async *step({ messages }) {
      asked = messages;
      shown = task.states.at(-1);
      yield { type: 'text', text: 'It is gone.' };
      return { text: 'It is gone.', calls: [] };
    },
  };
  await task.supervise(2, { model, stepsMax: 4, sumsUp: true, agentGoneMs: 1 });
  assert.equal(asked.at(-1)?.text, '[the agent failed: the agent is gone]');
  assert.equal(shown, 'TASK_STATE_WORKING');
  const states = ['TASK_STATE_WORKING', 'TASK_STATE_AUTH_REQUIRED', 'TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'];
  assert.deepEqual(task.states, states);
});

test('a supervisor that is stopped requeues its work; one whose log fails rejects with that error', async () => {
  {
    using task = await waitingForCredentials('call-1-1');
    task.relay();
    const supervised = task.supervise(2);
    const requeues = assert.rejects(supervised, Requeued);
    await task.until(() => task.lanes.includes('1/call-1-1/start'));
    task.stop();
    await requeues;
  }
  using task = await waitingForCredentials('call-1-1');
  const away = new Error('away');
  task.log.inputs.append = async () => Promise.reject(away);
  await assert.rejects(task.supervise(2), away);
});

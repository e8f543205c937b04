import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, Producer } from '@hopline/events';
import { createMemoryLog } from '@hopline/log/memory';
import { type Command, ROOT_AGENT } from '@hopline/task';
import { agent as producer, StoredScenario } from '@hopline/task/test-kit';
import { isBalanced } from './audit.ts';
import { reportTask } from './task-report.ts';

const TASK = 't1';

/** A task whose inputs and facts are written separately, so that the facts may differ from what a relay would store. */
class AuditedTask {
  readonly log = createMemoryLog({ shards: 1 });
  readonly #task = new StoredScenario(this.log.facts, TASK, () => 1);
  #inputSeq = 0;
  #ordinals = new Map<string, number>();

  async receiveMessage(messageId = 'm1'): Promise<this> {
    const message = { messageId, role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
    const input = { kind: 'message', message, contextId: 'c', role: 'agent.argocd', profile: 'transparent' } as const;
    const record = { v: 1, at: 1, from: 'client', input } as const;
    this.#inputSeq = (await this.log.inputs.append(TASK, record, { id: `${TASK}:${messageId}` })).seq;
    return this.store({ kind: 'client', taskId: TASK, input });
  }

  async receive(from: Producer, inputs: AgentInput[], ordinal?: number): Promise<this> {
    const n = ordinal ?? (this.#ordinals.get(`${from.id}.${from.attempt}`) ?? 0) + 1;
    const last = inputs.reduce((sum, input) => sum + (input.kind === 'text' ? input.tokens.length : 1), n - 1);
    this.#ordinals.set(`${from.id}.${from.attempt}`, last);
    this.#inputSeq = (await this.log.inputs.append(TASK, { v: 1, at: 1, from, n, inputs }, { id: `${Math.random()}` })).seq;
    return this;
  }

  async store(...commands: Command[]): Promise<this> {
    for (const command of commands) this.#task.when(command);
    this.#task.aggregate = { ...this.#task.aggregate!, foldedSeq: this.#inputSeq };
    await this.#task.store();
    return this;
  }
}

const agent = (attempt = 1) => producer(ROOT_AGENT, attempt);
const open: AgentInput = { kind: 'open', lane: 'a', artifact: { name: 'response' } };
const text = (...tokens: string[]): AgentInput => ({ kind: 'text', lane: 'a', tokens });
const command = (input: Exclude<AgentInput, { kind: 'text' }>, attempt = 1): Command => ({
  kind: 'agent',
  from: agent(attempt),
  input,
});
const chunk = (content: string, count: number, attempt = 1): Command => {
  const provenance = { firstSeq: 1, lastSeq: 1, count, n: count, reason: 'ready', heldMs: 0, firstAt: 0, lastAt: 0 };
  return { kind: 'run', from: agent(attempt), lane: 'a', text: content, last: false, n: count, chunk: provenance };
};
const done: Exclude<AgentInput, { kind: 'text' }> = { kind: 'status', state: 'TASK_STATE_COMPLETED' };

test('an input of a kind that a later version wrote is accounted for', async () => {
  const task = await new AuditedTask().receiveMessage();
  await task.receive(agent(), [{ kind: 'pause' } as unknown as AgentInput]);
  await task.store();
  const report = await reportTask(task.log, TASK);
  assert.equal(report?.audit.tallies.unknown.received, 1);
  assert.ok(isBalanced(report.audit));
});

test('each merged token is accounted for', async () => {
  const task = await new AuditedTask().receiveMessage();
  await task.receive(agent(), [open, text('H', 'ere', ' is', ' ', 'ha', 'ha'), done]);
  await task.store(command(open), chunk('Here', 2), chunk(' is haha', 4), command(done));
  const audit = (await reportTask(task.log, TASK))!.audit;
  assert(isBalanced(audit), JSON.stringify(audit));
  assert.deepEqual([audit.tallies.text.received, audit.chunks, audit.mergedTokens, audit.incomplete], [6, 2, 4, false]);
});

test('a lost, duplicated or changed token is found', async () => {
  const wrong: [Command[], number, number][] = [
    [[chunk('Her', 2)], 1, 1],
    [[chunk('Here', 3), chunk('e', 1)], -1, 1],
    [[chunk('Herr', 3)], 0, 1],
    [[], 3, 1],
  ];
  for (const [chunks, unaccounted, differing] of wrong) {
    const task = await new AuditedTask().receiveMessage();
    await task.receive(agent(), [open, text('H', 'er', 'e'), done]);
    await task.store(command(open), ...chunks, command(done));
    const audit = (await reportTask(task.log, TASK))!.audit;
    assert.equal(isBalanced(audit), false);
    assert.deepEqual([audit.unaccounted.text, audit.differing.length], [unaccounted, differing]);
  }
});

test('late inputs of a dead attempt, duplicates and inputs after the end are distinguished, with reasons', async () => {
  const task = await new AuditedTask().receiveMessage();
  await task.receive(agent(1), [open, text('dead')]);
  await task.store(command(open), chunk('dead', 1));
  await task.receive(agent(2), [open, text('a', 'live')]);
  await task.store(command(open, 2), chunk('alive', 2, 2));
  await task.receive(agent(1), [text('late')], 3);
  await task.receive(agent(2), [text('live')], 3);
  await task.receive(agent(2), [done]);
  await task.store(command(done, 2));
  await task.receive(agent(2), [text('x', 'y')]);
  const audit = (await reportTask(task.log, TASK))!.audit;
  assert(isBalanced(audit), JSON.stringify(audit));
  const { received, duplicates, rejected, accepted, pending } = audit.tallies.text;
  assert.deepEqual([received, duplicates, accepted, pending], [7, 1, 3, 0]);
  assert.deepEqual(rejected, { 'stale attempt': 1, terminal: 2 });
});

test('inputs that a running task has not stored yet are pending; removed inputs make the audit incomplete', async () => {
  const task = await new AuditedTask().receiveMessage();
  await task.receive(agent(), [open, text('one')]);
  await task.store(command(open), chunk('one', 1));
  await task.receive(agent(), [text('two'), text('three')]);
  const running = (await reportTask(task.log, TASK))!.audit;
  assert(isBalanced(running));
  assert.equal(running.tallies.text.pending, 2);
  task.log.expire('inputs', TASK, 3);
  assert.equal((await reportTask(task.log, TASK))!.audit.incomplete, true);
  assert.equal(await reportTask(task.log, 'other'), undefined);
});

test('a task whose first facts retention has removed is reported as partial, from its oldest record', async () => {
  const task = await new AuditedTask().receiveMessage();
  await task.receive(agent(), [open, text('one')]);
  await task.store(command(open), chunk('one', 1));
  await task.receive(agent(), [text('two'), done]);
  await task.store(chunk('two', 1));
  await task.store(command(done));
  const { facts } = task.log;
  const seqs: number[] = [];
  for await (const { seq } of facts.read(TASK, 0)) seqs.push(seq);
  const whole = (await reportTask(task.log, TASK))!;
  assert.deepEqual([whole.partial, whole.audit.incomplete, isBalanced(whole.audit)], [undefined, false, true]);
  task.log.expire('facts', TASK, seqs[2]!);
  const rest = (await reportTask(task.log, TASK))!;
  assert.deepEqual([rest.partial, rest.audit.incomplete, rest.state], [['facts'], true, 'completed']);
  assert.deepEqual(
    rest.events.map(({ generation }) => generation),
    whole.events.filter(({ seq }) => seq >= seqs[2]!).map(({ generation }) => generation),
  );
  assert.equal(rest.relays[0]?.fromGeneration, rest.events[0]?.generation);
  task.log.expire('inputs', TASK, 3);
  assert.deepEqual((await reportTask(task.log, TASK))!.partial, ['inputs', 'facts']);
});

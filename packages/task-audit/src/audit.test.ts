import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, Fact, Producer, TaskAggregate } from '@hopline/events';
import { createMemoryLog } from '@hopline/log/memory';
import { type Command, decide, evolve } from '@hopline/task';
import { auditTask, isBalanced } from './audit.ts';

const TASK = 't1';

/** A task told twice: to the inputs as it was said, to the facts as a relay would have stored it, or not. */
class Story {
  readonly log = createMemoryLog({ shards: 1 });
  #aggregate: TaskAggregate | undefined;
  #seq = 0;
  #raw = 0;
  #ordinals = new Map<string, number>();

  async ask(messageId = 'm1'): Promise<this> {
    const message = { messageId, role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
    const input = { kind: 'message', message, contextId: 'c', role: 'agent.echo', profile: 'transparent' } as const;
    const record = { v: 1, at: 1, from: 'client', input } as const;
    this.#raw = (await this.log.inputs.append(TASK, record, { id: `${TASK}:${messageId}` })).seq;
    return this.store({ kind: 'client', taskId: TASK, input });
  }

  async say(from: Producer, inputs: AgentInput[], again?: number): Promise<this> {
    const n = again ?? (this.#ordinals.get(`${from.id}.${from.attempt}`) ?? 0) + 1;
    const last = inputs.reduce((sum, input) => sum + (input.kind === 'text' ? input.tokens.length : 1), n - 1);
    this.#ordinals.set(`${from.id}.${from.attempt}`, last);
    this.#raw = (await this.log.inputs.append(TASK, { v: 1, at: 1, from, n, inputs }, { id: `${Math.random()}` })).seq;
    return this;
  }

  async store(...items: Command[]): Promise<this> {
    let aggregate = this.#aggregate;
    const facts: Fact[] = [];
    for (const item of items) {
      for (const fact of decide(aggregate, item, 1).facts) {
        facts.push(fact);
        aggregate = evolve(aggregate, fact);
      }
    }
    this.#aggregate = { ...aggregate!, foldedSeq: this.#raw };
    const record = { v: 1, facts, aggregate: this.#aggregate, startSeq: this.#seq === 0 ? 0 : 1 } as const;
    this.#seq = (await this.log.facts.append(record, { expected: this.#seq, id: `${Math.random()}` })).seq;
    return this;
  }
}

const agent = (attempt = 1): Producer => ({ id: 'agent', agent: 'echo', turn: 1, attempt });
const open: AgentInput = { kind: 'open', lane: 'a', artifact: { name: 'response' } };
const text = (...tokens: string[]): AgentInput => ({ kind: 'text', lane: 'a', tokens });
const said = (input: Exclude<AgentInput, { kind: 'text' }>, attempt = 1): Command => ({
  kind: 'agent',
  from: agent(attempt),
  input,
});
const chunk = (content: string, count: number, attempt = 1): Command => {
  const provenance = { firstSeq: 1, lastSeq: 1, count, n: count, reason: 'ready', heldMs: 0, firstAt: 0, lastAt: 0 };
  return { kind: 'run', from: agent(attempt), lane: 'a', text: content, last: false, n: count, chunk: provenance };
};
const done: Exclude<AgentInput, { kind: 'text' }> = { kind: 'status', state: 'TASK_STATE_COMPLETED' };

test('tokens that were merged into chunks are accounted for, one by one', async () => {
  const story = await new Story().ask();
  await story.say(agent(), [open, text('H', 'ere', ' is', ' ', 'ha', 'ha'), done]);
  await story.store(said(open), chunk('Here', 2), chunk(' is haha', 4), said(done));
  const audit = (await auditTask(story.log, TASK))!;
  assert(isBalanced(audit), JSON.stringify(audit));
  assert.deepEqual([audit.tallies.text.received, audit.chunks, audit.mergedTokens, audit.incomplete], [6, 2, 4, false]);
});

test('a token that was lost, doubled or changed is found', async () => {
  const wrong: [Command[], number, number][] = [
    [[chunk('Her', 2)], 1, 1],
    [[chunk('Here', 3), chunk('e', 1)], -1, 1],
    [[chunk('Hear', 3)], 0, 1],
    [[], 3, 1],
  ];
  for (const [chunks, unaccounted, differing] of wrong) {
    const story = await new Story().ask();
    await story.say(agent(), [open, text('H', 'er', 'e'), done]);
    await story.store(said(open), ...chunks, said(done));
    const audit = (await auditTask(story.log, TASK))!;
    assert.equal(isBalanced(audit), false);
    assert.deepEqual([audit.unaccounted.text, audit.differing.length], [unaccounted, differing]);
  }
});

test('what a dead attempt said late, what was said twice and what came after the end are told apart, with reasons', async () => {
  const story = await new Story().ask();
  await story.say(agent(1), [open, text('dead')]);
  await story.store(said(open), chunk('dead', 1));
  await story.say(agent(2), [open, text('a', 'live')]);
  await story.store(said(open, 2), chunk('alive', 2, 2));
  await story.say(agent(1), [text('late')], 3);
  await story.say(agent(2), [text('live')], 3);
  await story.say(agent(2), [done]);
  await story.store(said(done, 2));
  await story.say(agent(2), [text('x', 'y')]);
  const audit = (await auditTask(story.log, TASK))!;
  assert(isBalanced(audit), JSON.stringify(audit));
  const { received: all, duplicates: repeated, rejected: dropped, accepted, pending: waiting } = audit.tallies.text;
  assert.deepEqual([all, repeated, accepted, waiting], [7, 1, 3, 0]);
  assert.deepEqual(dropped, { 'stale attempt': 1, terminal: 2 });
});

test('what a running task has not stored yet waits, and what retention has removed makes the books incomplete', async () => {
  const story = await new Story().ask();
  await story.say(agent(), [open, text('one')]);
  await story.store(said(open), chunk('one', 1));
  await story.say(agent(), [text('two'), text('three')]);
  const running = (await auditTask(story.log, TASK))!;
  assert(isBalanced(running));
  assert.equal(running.tallies.text.pending, 2);
  story.log.expire('inputs', TASK, 3);
  assert.equal((await auditTask(story.log, TASK))!.incomplete, true);
  assert.equal(await auditTask(story.log, 'other'), undefined);
});

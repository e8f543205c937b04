import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CoalesceSettings, DEFAULT_SETTINGS } from '@hopline/coalesce';
import type { AgentInput, Fact, InputRecord, Producer, TaskAggregate, Writer } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import type { RejectionReason } from '@hopline/task';
import fc from 'fast-check';
import { decideBatch } from './decide-batch.ts';
import { InputLedger } from './input-ledger.ts';
import { withoutStaleOrdinals } from './ordinal-deduplicator.ts';
import { TaskInputs } from './task-inputs.ts';

const AGENT: Producer = { id: 'agent', agent: 'echo', turn: 1, item: 1, attempt: 1 };
const WORKING: AgentInput = { kind: 'status', state: 'TASK_STATE_WORKING' };
const COMPLETED: AgentInput = { kind: 'status', state: 'TASK_STATE_COMPLETED' };
const OPEN: AgentInput = { kind: 'open', lane: 'a', artifact: { name: 'response' } };
const text = (...tokens: string[]): AgentInput => ({ kind: 'text', lane: 'a', tokens });

/** A task as a relay folds it, without the log: what is stored are the facts, and the aggregate of the newest record. */
class FoldedTask {
  readonly facts: Fact[] = [];
  readonly rejected: RejectionReason[] = [];
  nowMs = 0;
  #stored: TaskAggregate | undefined;
  #aggregate: TaskAggregate | undefined;
  readonly #log: StoredInput[] = [];
  readonly #coalesce: CoalesceSettings;
  #inputs: TaskInputs;
  #ledger: InputLedger;
  #nextN = 1;

  constructor(coalesce: Partial<CoalesceSettings> = {}) {
    this.#coalesce = { ...DEFAULT_SETTINGS, ...coalesce };
    [this.#inputs, this.#ledger] = this.#begin();
    const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
    const input = { kind: 'message', message, contextId: 'c', role: 'agent.echo', profile: 'transparent' } as const;
    this.read({ v: 1, at: 0, from: 'client', input }, 'client');
    this.write(WORKING, OPEN).append();
  }

  /** The next record of the agent. */
  write(...inputs: AgentInput[]): this {
    const n = this.#nextN;
    this.#nextN += inputs.reduce((sum, input) => sum + (input.kind === 'text' ? input.tokens.length : 1), 0);
    return this.read({ v: 1, at: this.nowMs, from: AGENT, n, inputs });
  }

  read(record: InputRecord, writer: Writer = 'agent.echo'): this {
    const stored = { seq: this.#log.length + 1, taskId: 't', record, writer, bytes: 0, storedAt: 0 };
    this.#log.push(stored);
    this.#inputs.accept(stored, this.#aggregate);
    return this;
  }

  /** Stores at most `appends` records. */
  append(appends = Number.POSITIVE_INFINITY): this {
    this.#inputs.releaseDueText(false);
    for (let left = appends; left > 0 && this.#inputs.hasCommands; left -= 1) {
      const onDecided = this.#ledger.settleCommand.bind(this.#ledger);
      const clocks = { now: () => this.nowMs, wallNow: () => this.nowMs };
      const { facts, aggregate } = decideBatch(this.#aggregate, this.#inputs.takeBatch(), { ...clocks, onDecided });
      this.#aggregate = aggregate;
      if (facts.length === 0 || aggregate === undefined) continue;
      const foldedSeq = (this.#inputs.oldestSeq ?? this.#inputs.lastSeq + 1) - 1;
      this.#stored = this.#inputs.folded(aggregate, Math.max(aggregate.foldedSeq, foldedSeq));
      this.#aggregate = this.#stored;
      this.#inputs.stored(this.#stored.foldedSeq);
      this.facts.push(...facts);
    }
    return this;
  }

  /** Another relay begins with the newest record, and reads every input again. */
  takeOver(): this {
    this.#aggregate = this.#stored && withoutStaleOrdinals(this.#stored);
    [this.#inputs, this.#ledger] = this.#begin();
    for (const stored of this.#log) this.#inputs.accept(stored, this.#aggregate);
    return this;
  }

  get text(): string {
    let shown = '';
    for (const fact of this.facts) {
      if (fact.kind !== 'artifact.updated' || fact.lane !== 'a') continue;
      const { artifact, append } = fact.event.artifactUpdate;
      shown = (append ? shown : '') + artifact.parts.map(part => part.text ?? '').join('');
    }
    return shown;
  }

  get reason(): unknown {
    const last = this.facts.at(-1);
    return last?.kind === 'status.changed' ? last.event.statusUpdate.metadata?.reason : undefined;
  }

  #begin(): [TaskInputs, InputLedger] {
    const ledger = new InputLedger({ onOutcome: () => {}, onRejected: reason => this.rejected.push(reason) });
    const clocks = { now: () => this.nowMs, wallNow: () => this.nowMs };
    const context = { coalesce: this.#coalesce, ...clocks };
    return [new TaskInputs({ taskId: 't', aggregate: this.#aggregate, isExpired: false, ledger, context }), ledger];
  }
}

type Step = { tokens: string[] } | 'notice' | 'append' | 'append once' | 'take over' | 'wait';

test('whatever relays take over, and whenever: the text is that of the tokens, each once and in order', () => {
  const token = fc.constantFrom('', 'x', 'yz', '😀', '\ud83d', '\ude00', 'ab\ud83d', '\ude00c', 'x'.repeat(30), '👩‍', '\r');
  const step = fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 4, arbitrary: fc.record({ tokens: fc.array(token, { minLength: 1, maxLength: 4 }) }) },
    { weight: 2, arbitrary: fc.constantFrom<Step>('append', 'append once', 'take over') },
    { weight: 1, arbitrary: fc.constantFrom<Step>('notice', 'wait') },
  );
  const settings = fc.record({ eventCostMs: fc.constantFrom(0, 110), chunkBytesMax: fc.constantFrom(8, 64, 32_768) });
  fc.assert(
    fc.property(settings, fc.array(step, { maxLength: 30 }), (chosen, steps) => {
      const task = new FoldedTask(chosen);
      let expected = '';
      for (const [index, next] of steps.entries()) {
        task.nowMs += 3;
        if (next === 'append') task.append();
        else if (next === 'append once') task.append(1);
        else if (next === 'take over') task.takeOver();
        else if (next === 'wait') task.nowMs += 40_000;
        else if (next === 'notice') {
          const parts = [{ text: 'notice' }];
          task.write({ kind: 'artifact', lane: `notice ${index}`, artifact: {}, parts, append: false, last: true });
        } else {
          task.write(text(...next.tokens));
          expected += next.tokens.join('');
        }
      }
      task.write(COMPLETED).append();
      assert.deepEqual([task.text, task.rejected, task.reason], [expected, [], undefined]);
    }),
    { numRuns: 1_000 },
  );
});

test('a token longer than a record is continued by each owner where the one before it stopped', () => {
  const token = 'abcdefgh'.repeat(48 * 1024);
  const task = new FoldedTask().write(text(token, '!'));
  for (let owners = 0; owners < 3; owners += 1) task.append(1).takeOver();
  task.write(COMPLETED).append();
  assert.equal(task.text, `${token}!`);
  assert.deepEqual([task.rejected, task.reason], [[], undefined]);
});

test('a record that is stored again is folded once, and the next one leaves no gap', () => {
  const task = new FoldedTask().write(text('a', 'b'), text('c')).append();
  task.read({ v: 1, at: 0, from: AGENT, n: 3, inputs: [text('a', 'b')] }).append();
  task.read({ v: 1, at: 0, from: AGENT, n: 3, inputs: [text('a')] }).append();
  task.write(text('d'), COMPLETED).append();
  assert.deepEqual([task.text, task.reason], ['abcd', undefined]);
});

test('text that was held when a gap shows is stored before the task fails; a first ordinal that is missing is a gap', () => {
  const task = new FoldedTask().write(text('held ')).append().write(text('text'));
  task.read({ v: 1, at: 0, from: AGENT, n: 7, inputs: [text('lost before')] }).append();
  assert.equal(task.text, 'held text');
  assert.match(String(task.reason), /removed from the log/);
  const later = new FoldedTask().write(text('one')).append();
  later.read({ v: 1, at: 0, from: { ...AGENT, attempt: 2 }, n: 2, inputs: [OPEN] }).append();
  assert.match(String(later.reason), /removed from the log/);
});

test('a task that was discarded takes no input and shows no text that is still held', () => {
  const ledgered: string[] = [];
  const ledger = new InputLedger({
    onOutcome: (kind, outcome, count) => ledgered.push(`${kind} ${outcome} ${count}`),
    onRejected: () => {},
  });
  const context = { coalesce: DEFAULT_SETTINGS, now: () => 0, wallNow: () => 0 };
  const inputs = new TaskInputs({ taskId: 't', aggregate: undefined, isExpired: false, ledger, context });
  inputs.discard();
  const record = { v: 1, at: 0, from: AGENT, n: 1, inputs: [OPEN, text('a', 'b')] } as const;
  const stored = { seq: 1, taskId: 't', record: { ...record, inputs: [...record.inputs] }, writer: 'agent.echo' as const };
  assert.equal(inputs.accept({ ...stored, bytes: 0, storedAt: 0 }, undefined), true);
  inputs.releaseDueText(true);
  assert.deepEqual([inputs.hasCommands, inputs.oldestSeq, inputs.lastSeq], [false, undefined, 1]);
  assert.deepEqual(ledgered, ['open received 1', 'open rejected 1', 'text received 2', 'text rejected 2']);
});

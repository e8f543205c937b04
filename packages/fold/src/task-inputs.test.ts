import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CoalesceSettings, DEFAULT_SETTINGS } from '@hopline/coalesce';
import type { AgentInput, Fact, InputKind, InputRecord, Producer, TaskAggregate, Writer } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import type { RejectionReason } from '@hopline/task';
import fc from 'fast-check';
import { AppendQueue } from './append-queue.ts';
import { CoalescedText } from './coalesced-text.ts';
import { decideBatch } from './decide-batch.ts';
import { InputLedger, type InputOutcome } from './input-ledger.ts';
import { OrdinalDeduplicator, withoutStaleOrdinals } from './ordinal-deduplicator.ts';
import { TaskInputs } from './task-inputs.ts';

const AGENT: Producer = { id: 'agent', agent: 'echo', turn: 1, item: 1, attempt: 1 };
const WORKING: AgentInput = { kind: 'status', state: 'TASK_STATE_WORKING' };
const COMPLETED: AgentInput = { kind: 'status', state: 'TASK_STATE_COMPLETED' };
const OPEN: AgentInput = { kind: 'open', lane: 'a', artifact: { name: 'response' } };
const text = (...tokens: string[]): AgentInput => ({ kind: 'text', lane: 'a', tokens });

/** A task as a relay folds it, but without a log: only the facts and the newest aggregate are stored. */
class FoldedTask {
  readonly facts: Fact[] = [];
  readonly rejected: RejectionReason[] = [];
  readonly #outcomes: [InputKind, InputOutcome][] = [];
  nowMs = 0;
  #stored: TaskAggregate | undefined;
  #aggregate: TaskAggregate | undefined;
  readonly #log: StoredInput[] = [];
  readonly #coalesce: CoalesceSettings;
  #inputs: TaskInputs;
  #queue: AppendQueue;
  #ledger: InputLedger;
  #nextN = 1;

  constructor(coalesce: Partial<CoalesceSettings> = {}) {
    this.#coalesce = { ...DEFAULT_SETTINGS, ...coalesce };
    [this.#inputs, this.#queue, this.#ledger] = this.#begin();
    const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
    const input = { kind: 'message', message, contextId: 'c', role: 'agent.echo', profile: 'transparent' } as const;
    this.read({ v: 1, at: 0, from: 'client', input }, 'client');
    this.write(WORKING, OPEN).append();
  }

  /** Writes the agent's next record. */
  write(...inputs: AgentInput[]): this {
    return this.#write(inputs, {});
  }

  /** The next record of the agent, which has held its text for 40 ms. */
  writeHeld(...inputs: AgentInput[]): this {
    return this.#write(inputs, { heldMs: 40 });
  }

  #write(inputs: AgentInput[], more: { heldMs?: number }): this {
    const n = this.#nextN;
    this.#nextN += inputs.reduce((sum, input) => sum + (input.kind === 'text' ? input.tokens.length : 1), 0);
    return this.read({ v: 1, at: this.nowMs, from: AGENT, n, inputs, ...more });
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
    for (let left = appends; left > 0 && this.#queue.length > 0; left -= 1) {
      const onDecided = this.#ledger.settleCommand.bind(this.#ledger);
      const clocks = { now: () => this.nowMs, wallNow: () => this.nowMs };
      const { facts, aggregate } = decideBatch(this.#aggregate, this.#queue.take(), { ...clocks, onDecided });
      this.#aggregate = aggregate;
      if (facts.length === 0 || aggregate === undefined) continue;
      this.#stored = this.#inputs.folded(aggregate);
      this.#aggregate = this.#stored;
      this.#inputs.stored(this.#stored.foldedSeq);
      this.facts.push(...facts);
    }
    return this;
  }

  /** Another relay begins with the newest record, and reads every input again. */
  takeOver(): this {
    this.#aggregate = this.#stored && withoutStaleOrdinals(JSON.parse(JSON.stringify(this.#stored)));
    [this.#inputs, this.#queue, this.#ledger] = this.#begin();
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

  /** The outcomes that the ledger has for the inputs of one kind. */
  ledgered(of: InputKind): InputOutcome[] {
    return this.#outcomes.filter(([kind]) => kind === of).map(([, outcome]) => outcome);
  }

  get reason(): unknown {
    const last = this.facts.at(-1);
    return last?.kind === 'status.changed' ? last.event.statusUpdate.metadata?.reason : undefined;
  }

  #begin(): [TaskInputs, AppendQueue, InputLedger] {
    const ledger = new InputLedger({
      onOutcome: (kind, outcome) => this.#outcomes.push([kind, outcome]),
      onRejected: reason => this.rejected.push(reason),
    });
    const now = () => this.nowMs;
    const queue = new AppendQueue(now);
    const text = new CoalescedText(this.#coalesce);
    const clocks = { now, wallNow: now };
    const aggregate = this.#aggregate;
    return [new TaskInputs({ taskId: 't', aggregate, isExpired: false, ledger, text, queue, ...clocks }), queue, ledger];
  }
}

type Step = { tokens: string[]; isHeld: boolean } | 'notice' | 'append' | 'append once' | 'take over' | 'wait';

test('however often and whenever relays take over, the text has every token once and in order', () => {
  const token = fc.constantFrom('', 'x', 'yz', '😀', '\ud83d', '\ude00', 'ab\ud83d', '\ude00c', 'x'.repeat(30), '👩‍', '\r');
  const step = fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 4, arbitrary: fc.record({ tokens: fc.array(token, { minLength: 1, maxLength: 4 }), isHeld: fc.boolean() }) },
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
          if (next.isHeld) task.writeHeld(text(...next.tokens));
          else task.write(text(...next.tokens));
          expected += next.tokens.join('');
        }
      }
      task.write(COMPLETED).append();
      assert.deepEqual([task.text, task.rejected, task.reason], [expected, [], undefined]);
    }),
    { numRuns: 1_000 },
  );
});

test('a token that is split after a notice is not repeated by the next relay', () => {
  const notice = (lane: string): AgentInput => {
    return { kind: 'artifact', lane, artifact: {}, parts: [{ text: 'notice' }], append: false, last: true };
  };
  const task = new FoldedTask({ eventCostMs: 0 });
  task.write(text('\ud83d')).write(notice('b')).write(text('ab\ud83d')).write(notice('c')).append().takeOver();
  task.write(COMPLETED).append();
  assert.deepEqual([task.text, task.rejected], ['\ud83dab\ud83d', []]);
});

/** A task whose agent uses `name` for its lane and its call. Relays take over in the middle of both. */
function named(name: string, eventCostMs: number): FoldedTask {
  const called: Producer = { id: name, agent: 'painter', turn: 1, item: 2, attempt: 1 };
  const task = new FoldedTask({ eventCostMs });
  const write = (n: number, ...inputs: AgentInput[]) => task.read({ v: 1, at: 0, from: called, n, inputs }, 'agent.painter');
  task.write({ kind: 'open', lane: name, artifact: { name: 'drawn' } }, { kind: 'text', lane: name, tokens: ['one ', 'two '] });
  task.append().takeOver();
  task.write({ kind: 'text', lane: name, tokens: ['three'] }, { kind: 'close', lane: name });
  task.write({ kind: 'call', call: name, agent: 'painter' }).append();
  write(1, { kind: 'open', lane: 'called', artifact: {} }, { kind: 'text', lane: 'called', tokens: ['four '] })
    .append()
    .takeOver();
  write(3, { kind: 'text', lane: 'called', tokens: ['five'] }, { kind: 'ended', call: name, state: 'TASK_STATE_COMPLETED' });
  task.append().takeOver();
  task.write({ kind: 'text', lane: name, tokens: ['too late'] }, { kind: 'call', call: name, agent: 'painter' });
  write(5, { kind: 'text', lane: 'called', tokens: ['too late'] });
  return task.append().write(COMPLETED).append();
}

test('a lane, a call and a producer may have the name of a member that every object inherits', () => {
  for (const eventCostMs of [0, 110]) {
    const plain = named('plain', eventCostMs);
    assert.deepEqual(new Set(plain.rejected), new Set(['closed lane', 'duplicate call']));
    for (const name of Object.getOwnPropertyNames(Object.prototype)) {
      const task = named(name, eventCostMs);
      const ids = (key: string, value: unknown) => (key === 'artifactId' ? undefined : value);
      const shown = ({ facts }: FoldedTask) => JSON.stringify(facts, ids).replaceAll(JSON.stringify(name), '"plain"');
      assert.deepEqual([shown(task), task.rejected], [shown(plain), plain.rejected], name);
    }
  }
});

test('the last ordinals of a producer whose name equals an inherited member are kept, and stale ones are dropped', () => {
  for (const name of Object.getOwnPropertyNames(Object.prototype)) {
    const calls = Object.fromEntries([[name, { agent: 'painter' }]]);
    const producers = Object.fromEntries([[name, { attempt: 1, n: 1, lastN: 1 }]]);
    const aggregate = {
      role: 'agent.echo',
      turn: 1,
      calls,
      producers: {},
      foldedSeq: 2,
      lastNSeq: 1,
    } as unknown as TaskAggregate;
    const deduplicator = new OrdinalDeduplicator(undefined);
    const from: Producer = { id: name, agent: 'painter', turn: 1, attempt: 1 };
    deduplicator.record({ v: 1, at: 0, from, n: 1, inputs: [text('x')] }, 1, { n: 0, lastSeenOrdinal: 0 }, 2);
    const kept = Object.entries(deduplicator.withLastOrdinals(aggregate, 2).producers);
    assert.deepEqual(kept, [[name, { attempt: 1, n: 0, lastN: 1 }]]);
    const dropped = Object.entries(withoutStaleOrdinals({ ...aggregate, producers }).producers);
    assert.deepEqual(dropped, [[name, { attempt: 1, n: 1 }]]);
  }
});

test('each owner continues a token longer than a record where the previous owner stopped', () => {
  const token = 'abcdefgh'.repeat(48 * 1024);
  const task = new FoldedTask().write(text(token, '!'));
  for (let owners = 0; owners < 3; owners += 1) task.append(1).takeOver();
  task.write(COMPLETED).append();
  assert.equal(task.text, `${token}!`);
  assert.deepEqual([task.rejected, task.reason], [[], undefined]);
});

test('text that its producer has held is sent at once, and text without heldMs is held', () => {
  const chunksOf = ({ facts }: FoldedTask) =>
    facts.flatMap(fact => (fact.kind === 'artifact.updated' && fact.chunk ? [[fact.chunk.reason, fact.chunk.heldMs]] : []));
  const task = new FoldedTask().write(text('first ')).append();
  task.nowMs += 50;
  task.writeHeld(text('second ', 'third ')).append();
  assert.deepEqual(chunksOf(task), [
    ['first', 0],
    ['producer', 40],
  ]);
  task.nowMs += 50;
  task.write(text('fourth ')).append();
  assert.equal(task.text, 'first second third ', 'an older version of the agent wrote it');
  task.nowMs += 10;
  task.writeHeld(text('fifth')).append();
  assert.deepEqual(chunksOf(task).at(-1), ['producer', 10], 'it takes along what was held before it');
  assert.equal(task.text, 'first second third fourth fifth');
});

test('holding text keeps surrogate pairs and clusters together', () => {
  const task = new FoldedTask().write(text('x')).append();
  task.writeHeld(text('half \ud83d')).append();
  assert.equal(task.text, 'x', 'the other half comes with the next record');
  task.writeHeld(text('\ude00')).append();
  assert.equal(task.text, 'xhalf 😀');
  task.writeHeld(text('a line\r')).append();
  assert.equal(task.text, 'xhalf 😀');
  task.nowMs += DEFAULT_SETTINGS.holdMsMax;
  task.append();
  assert.equal(task.text, 'xhalf 😀a line\r');
});

test('a close that follows queued text of its lane is stored with that text, and is accepted once', () => {
  const task = new FoldedTask().write(text('one')).append().write(text('two'), { kind: 'close', lane: 'a' }).append();
  const closed = task.facts.at(-1);
  assert.ok(closed?.kind === 'artifact.updated' && closed.event.artifactUpdate.lastChunk && closed.chunk?.count === 1);
  assert.deepEqual([task.text, task.rejected, task.ledgered('close')], ['onetwo', [], ['received', 'accepted']]);
});

test('a record that is stored twice is folded once, and the next record is not mistaken for a gap', () => {
  const task = new FoldedTask().write(text('a', 'b'), text('c')).append();
  task.read({ v: 1, at: 0, from: AGENT, n: 3, inputs: [text('a', 'b')] }).append();
  task.read({ v: 1, at: 0, from: AGENT, n: 3, inputs: [text('a')] }).append();
  task.write(text('d'), COMPLETED).append();
  assert.deepEqual([task.text, task.reason], ['abcd', undefined]);
});

test('text that is held when a gap is found is stored before the task fails; a missing first ordinal is a gap', () => {
  const task = new FoldedTask().write(text('held ')).append().write(text('text'));
  task.read({ v: 1, at: 0, from: AGENT, n: 7, inputs: [text('lost before')] }).append();
  assert.equal(task.text, 'held text');
  assert.match(String(task.reason), /removed from the log/);
  const later = new FoldedTask().write(text('one')).append();
  later.read({ v: 1, at: 0, from: { ...AGENT, attempt: 2 }, n: 2, inputs: [OPEN] }).append();
  assert.match(String(later.reason), /removed from the log/);
});

test('a discarded task accepts no input, and its held text is never shown', () => {
  const ledgered: string[] = [];
  const ledger = new InputLedger({
    onOutcome: (kind, outcome, count) => ledgered.push(`${kind} ${outcome} ${count}`),
    onRejected: () => {},
  });
  const now = () => 0;
  const [held, queue] = [new CoalescedText(DEFAULT_SETTINGS), new AppendQueue(now)];
  const clocks = { now, wallNow: now };
  const inputs = new TaskInputs({ taskId: 't', aggregate: undefined, isExpired: false, ledger, text: held, queue, ...clocks });
  inputs.discard();
  const record = { v: 1, at: 0, from: AGENT, n: 1, inputs: [OPEN, text('a', 'b')] } as const;
  const stored = { seq: 1, taskId: 't', record: { ...record, inputs: [...record.inputs] }, writer: 'agent.echo' as const };
  assert.equal(inputs.accept({ ...stored, bytes: 0, storedAt: 0 }, undefined), true);
  inputs.releaseDueText(true);
  assert.deepEqual([queue.length, inputs.oldestSeq, inputs.lastSeq], [0, undefined, 1]);
  assert.deepEqual(ledgered, ['open received 1', 'open rejected 1', 'text received 2', 'text rejected 2']);
});

test('a message that is read again does not begin a task if its task’s facts have expired; a new message does', () => {
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
  const input = { kind: 'message', message, contextId: 'c', role: 'agent.echo', profile: 'transparent' } as const;
  const stored = { seq: 1, taskId: 't', record: { v: 1, at: 0, from: 'client', input }, writer: 'client' } as const;
  const decide = (isExpired: boolean) => {
    const ledger = new InputLedger({ onOutcome: () => {}, onRejected: () => {} });
    const now = () => 0;
    const [text, queue] = [new CoalescedText(DEFAULT_SETTINGS), new AppendQueue(now)];
    const clocks = { now, wallNow: now };
    const inputs = new TaskInputs({ taskId: 't', aggregate: undefined, isExpired, ledger, text, queue, ...clocks });
    inputs.accept({ ...stored, bytes: 0, storedAt: 0 }, undefined);
    const rejected: (RejectionReason | undefined)[] = [];
    const { facts } = decideBatch(undefined, queue.take(), { ...clocks, onDecided: (_command, why) => rejected.push(why) });
    return [facts.map(({ kind }) => kind), rejected];
  };
  assert.deepEqual(decide(true), [[], ['unknown task']]);
  assert.deepEqual(decide(false), [['task.created'], [undefined]]);
});

test('a record that causes no fact holds the checkpoint until an aggregate with its ordinal is stored', () => {
  const deduplicator = new OrdinalDeduplicator(undefined);
  const record = { v: 1, at: 0, from: AGENT, n: 1, inputs: [WORKING] } as const;
  const before = deduplicator.lookUp({ ...record, inputs: [...record.inputs] });
  assert.ok(typeof before === 'object');
  assert.equal(deduplicator.oldestUnstoredSeq, undefined);
  deduplicator.record({ ...record, inputs: [...record.inputs] }, 1, before, 7);
  assert.equal(deduplicator.oldestUnstoredSeq, 7);
  deduplicator.stored(6);
  assert.equal(deduplicator.oldestUnstoredSeq, 7, 'the stored aggregate is older');
  deduplicator.stored(7);
  assert.equal(deduplicator.oldestUnstoredSeq, undefined);
});

test('half of a surrogate pair is shown before the next attempt begins, because its other half never comes', () => {
  const task = new FoldedTask().write(text('a')).append();
  task.writeHeld(text('\ud83d')).append();
  assert.equal(task.text, 'a', 'the half waits');
  task.read({ v: 1, at: 0, from: { ...AGENT, attempt: 2 }, n: 1, inputs: [WORKING] }).append();
  assert.equal(task.text, 'a\ud83d');
});

test('before a message with a condition, held text becomes an event, which makes the message fail, and no surrogate pair is cut', () => {
  const conditional = (messageId: string, ifGeneration: number): InputRecord => {
    const message = { messageId, role: 'ROLE_USER' as const, parts: [{ text: 'more' }] };
    const input = { kind: 'message', message, contextId: 'c', role: 'agent.echo', profile: 'transparent', ifGeneration } as const;
    return { v: 1, at: 0, from: 'client', input };
  };
  const task = new FoldedTask().write(text('x')).append();
  const { length: generation } = task.facts.filter(fact => 'generation' in fact);
  task.write(text('held \ud83d')).read(conditional('m2', generation), 'client').append();
  assert.deepEqual([task.text, task.rejected], ['xheld ', ['other generation']]);
  task.write(text('\ude00'));
  task.nowMs += DEFAULT_SETTINGS.holdMsMax;
  task.append();
  assert.equal(task.text, 'xheld 😀');
  const next = task.facts.filter(fact => 'generation' in fact).length;
  task.read(conditional('m3', next), 'client').read(conditional('m4', next), 'client').append();
  assert.deepEqual(task.rejected, ['other generation', 'other generation']);
  assert.equal(task.facts.filter(fact => fact.kind === 'message.received').length, 1);
});

import { isTerminal } from '@hopline/a2a';
import type { AgentInput, AgentRecord, ArtifactUpdated, Fact, Producer, TaskAggregate } from '@hopline/events';
import { isRole, isVisible } from '@hopline/events';
import { alreadyFolded, NOT_ENCODABLE, OrdinalDeduplicator, TASK_TOO_LARGE, TOO_LARGE, withMark } from '@hopline/fold';
import type { StoredInput } from '@hopline/log';
import { type Command, decide, evolve, failTask, INPUT_UNREADABLE, isOfOtherAgent } from '@hopline/task';
import { PendingText } from './pending-text.ts';
import { isSameFact } from './same-fact.ts';
import type { StoredTask } from './stored-task.ts';

/** The first place at which today's rules and the log differ. */
export type Divergence = {
  /** Raw sequence of the input whose command the rules decided; of the newest one, where the log has a fact that no input explains. */
  inputSeq: number;
  /** Log sequence of the record that should hold the fact. Absent: the log ends before it. */
  factSeq?: number;
  /** The stored fact; absent: the log has none there. */
  expected?: Fact;
  /** What the rules decide; absent: nothing. */
  got?: Fact;
  /** The facts are the same, and the stored aggregate is not what follows from them: the member that differs. */
  aggregateMember?: string;
  /** The task before. */
  before: { state?: string; turn?: number; generation: number };
};

/** The rules threw on an input. */
export class ReplayFailed extends Error {
  override readonly name = 'ReplayFailed';
  readonly inputSeq: number;

  constructor(inputSeq: number, cause: unknown) {
    super(`input ${inputSeq}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.inputSeq = inputSeq;
  }
}

/** Reasons that a relay gives by itself, when it could not fold or store what the inputs led to. */
const RELAY_REASONS: ReadonlySet<unknown> = new Set([TOO_LARGE, TASK_TOO_LARGE, NOT_ENCODABLE, INPUT_UNREADABLE]);
/** Of the aggregate: ordinals, sequences and sizes, which depend on what one append happened to contain. */
const PROGRESS_MEMBERS: ReadonlySet<string> = new Set(['producers', 'foldedSeq', 'lastNSeq', 'storedBytes']);

type StoredFact = { fact: Fact; seq: number; at: number };

class Diverged extends Error {
  readonly divergence: Divergence;

  constructor(divergence: Divergence) {
    super('diverged');
    this.divergence = divergence;
  }
}

/**
 * Decides the inputs of a task again, in their order, and holds each fact against the stored one. What only the relay's clock decided
 * is taken from the stored facts: the time of each decision and the boundaries of chunks. Everything else must follow from the inputs.
 * ADR 56 lists what that proves.
 */
export class RecordedReplay {
  readonly #task: StoredTask;
  readonly #rules: typeof decide;
  readonly #stored: StoredFact[];
  /** Index of the next stored fact. */
  #next = 0;
  #aggregate: TaskAggregate | undefined;
  readonly #deduplicator = new OrdinalDeduplicator(undefined);
  readonly #pending = new Map<string, PendingText>();
  /** Closings of lanes that a chunk contains: `<seq>/<ordinal>`. */
  readonly #closedByRun = new Set<string>();
  /** The inputs from here on are not reached yet. */
  #position = { record: 0, input: 0 };
  #inputSeq = 0;
  #isOver = false;

  constructor(task: StoredTask, rules: typeof decide = decide) {
    this.#task = task;
    this.#rules = rules;
    this.#stored = task.facts.flatMap(({ seq, record }) =>
      record.facts.filter(isKnownFact).map(fact => ({ fact, seq, at: fact.at })),
    );
  }

  /** The first difference; undefined when there is none. Throws ReplayFailed. */
  run(): Divergence | undefined {
    try {
      this.#replay();
      return undefined;
    } catch (error) {
      if (error instanceof Diverged) return error.divergence;
      throw new ReplayFailed(this.#inputSeq, error);
    }
  }

  #replay(): void {
    for (const [index, input] of this.#task.inputs.entries()) {
      if (this.#isOver || this.#isUndecided) break;
      this.#inputSeq = input.seq;
      this.#position = { record: index, input: 0 };
      this.#accept(input);
    }
    this.#drain();
    if (this.#next < this.#stored.length && !this.#isRelayFailure()) this.#diverge(undefined);
    this.#assertFolded();
    this.#assertAggregate();
  }

  /** The task is open, and nothing that is stored of it contains the current input or one after it. */
  get #isUndecided(): boolean {
    const { foldedSeq, state } = this.#task.aggregate;
    return this.#inputSeq > foldedSeq && this.#next === this.#stored.length && !isTerminal(state);
  }

  #accept(input: StoredInput): void {
    const { record, taskId, writer } = input;
    if (record.from !== 'client' && record.from !== 'relay') {
      this.#acceptAgent(record, input);
      return;
    }
    const server = isRole(writer) ? { server: writer } : {};
    const command: Command = record.from === 'relay' ? record.input : { kind: 'client', taskId, input: record.input, ...server };
    this.#drain();
    if (this.#isUndecided) return;
    // What makes no fact does not interrupt text.
    const isInterruption = command.kind !== 'copy-forward' && this.#decide(command).length > 0;
    if (isInterruption) this.#flush(() => true);
    this.#apply(command);
  }

  #acceptAgent(record: AgentRecord, input: StoredInput): void {
    if (this.#aggregate !== undefined && isOfOtherAgent(this.#aggregate, record.from)) return;
    const seen = this.#deduplicator.lookUp(record);
    if (seen === 'stale' || seen === 'other item') return;
    if (this.#deduplicator.hasGapBefore(record)) {
      this.#drain();
      this.#flush(() => true);
      this.#apply({ kind: 'lost', from: record.from });
    }
    let n = record.n;
    for (const [index, own] of record.inputs.entries()) {
      this.#position.input = index;
      if (own.kind === 'text') {
        const { tokens } = alreadyFolded(record, own, n, seen, undefined);
        if (tokens < own.tokens.length) this.#textOf(record.from, own.lane).push(record, own, n, tokens, input);
        this.#drain();
        n += own.tokens.length;
        continue;
      }
      if (n > seen.n) this.#acceptOther(record.from, own, n);
      n += 1;
    }
    this.#deduplicator.record(record, n - 1, seen, input.seq);
  }

  #acceptOther(from: Producer, input: Exclude<AgentInput, { kind: 'text' }>, n: number): void {
    this.#drain();
    if (this.#isUndecided) return;
    const isClosedByRun = this.#closedByRun.has(`${this.#inputSeq}/${this.#position.input}`);
    const isEnd = input.kind === 'status' && isTerminal(input.state);
    // Text of other lanes is merged across a closing that a run contains.
    const isMerged = isClosedByRun || (input.kind === 'close' && this.#dropRejected(from, input.lane));
    // The other half of a surrogate pair does not come after its lane, its attempt or its task has ended.
    if (!isMerged) this.#flush(({ from: own, lane }) => isEnd || isEarlierRun(own, from) || isSameRun(own, from, lane, input));
    const rejected = isClosedByRun ? undefined : this.#apply({ kind: 'agent', from, input });
    this.#aggregate = withMark(this.#aggregate, { from, n }, rejected);
  }

  /** Decides a command at the time of the stored fact and holds its facts against the log. The reason when it is rejected. */
  #apply(command: Command): ReturnType<typeof decide>['rejected'] {
    const { facts, rejected } = this.#rules(this.#aggregate, command, this.#at);
    this.#compare(facts);
    return rejected;
  }

  /** The relay's clock decided the generation of the first event after a loss of records. */
  #lossBefore(stored: Fact | undefined): { lostAfter: number; skipped: number } | undefined {
    if (stored === undefined || !isVisible(stored) || stored.lostAfter === undefined) return undefined;
    const { generation, lostAfter } = stored;
    return lostAfter === this.#aggregate?.generation ? { lostAfter, skipped: generation - lostAfter - 1 } : undefined;
  }

  #decide(command: Command): readonly Fact[] {
    return this.#rules(this.#aggregate, command, this.#at).facts;
  }

  get #at(): number {
    return this.#stored[this.#next]?.at ?? this.#aggregate?.at ?? this.#task.inputs[0]?.storedAt ?? 0;
  }

  #compare(facts: readonly Fact[]): void {
    let skipped = 0;
    for (const decided of facts) {
      if (this.#isOver) return;
      const stored = this.#stored[this.#next];
      const loss = this.#lossBefore(stored?.fact);
      skipped += loss?.skipped ?? 0;
      const fact =
        skipped === 0 || !isVisible(decided)
          ? decided
          : { ...decided, generation: decided.generation + skipped, ...(loss && { lostAfter: loss.lostAfter }) };
      if (stored === undefined || !isSameFact(stored.fact, fact)) {
        if (this.#isRelayFailure()) return;
        this.#diverge(fact);
      }
      this.#aggregate = evolve(this.#aggregate, fact);
      this.#next += 1;
    }
  }

  /** Takes the stored chunks whose tokens are all at hand. */
  #drain(): void {
    for (let stored = this.#stored[this.#next]; stored !== undefined && !this.#isOver; stored = this.#stored[this.#next]) {
      const { fact } = stored;
      if (fact.kind !== 'artifact.updated' || fact.chunk === undefined) return;
      const pending = this.#pending.get(keyOf(fact, this.#aggregate?.turn ?? 0));
      if (pending?.holds(fact.chunk) !== true) return;
      const isLast = fact.event.artifactUpdate.lastChunk === true;
      const closing = isLast || this.#isClosedNext(fact) ? this.#closingOf(pending, fact.chunk.n) : undefined;
      // Half a surrogate pair is held over what follows it: its lane closes later.
      if (isLast && closing === undefined) return;
      const run = pending.takeChunk(fact.chunk, closing !== undefined);
      const whole = this.#decide(run);
      // A run that closes its lane makes two facts where the first chunk must not be the last; otherwise the input closes it.
      const isClosedByRun = closing !== undefined && (isLast || whole.length > 1);
      if (isClosedByRun) this.#closedByRun.add(closing);
      const facts = isClosedByRun || !run.last ? whole : this.#decide({ ...run, last: false });
      if (facts.length === 0) this.#diverge(undefined);
      this.#compare(facts);
    }
  }

  /** The fact after the next one may be of the same decision, and closes the lane. */
  #isClosedNext({ lane, at }: ArtifactUpdated): boolean {
    const fact = this.#stored[this.#next + 1]?.fact;
    return fact?.kind === 'artifact.updated' && fact.lane === lane && fact.at === at && fact.chunk === undefined;
  }

  /** The input that closes the lane after its token `lastN`, if nothing but text and other closings precedes it. */
  #closingOf({ from, lane }: PendingText, lastN: number): string | undefined {
    const { record: current, input: reached } = this.#position;
    for (let index = current; index < this.#task.inputs.length; index += 1) {
      const { record, seq } = this.#task.inputs[index]!;
      if (!('inputs' in record)) return undefined;
      const seen = this.#deduplicator.lookUp(record);
      if (typeof seen === 'string') continue;
      let n = record.n;
      for (const [position, input] of record.inputs.entries()) {
        const isOwn = isSameProducer(record.from, from) && 'lane' in input && input.lane === lane;
        const before = n;
        n += input.kind === 'text' ? input.tokens.length : 1;
        if (input.kind === 'text' && isOwn && n - 1 > lastN) return undefined;
        const isKnown = (index === current && position < reached) || before <= seen.n;
        if (input.kind === 'text' || isKnown) continue;
        if (input.kind !== 'close') return undefined;
        const key = `${seq}/${position}`;
        if (isOwn && !this.#closedByRun.has(key)) return key;
      }
    }
    return undefined;
  }

  /** Text leaves before what follows it. What is left here has no fact, so it must be text that the rules reject. */
  #flush(isClosed: (text: PendingText) => boolean): void {
    for (const [key, pending] of this.#pending) {
      if (this.#isOver) return;
      const run = pending.takeAll(isClosed(pending));
      if (pending.isEmpty) this.#pending.delete(key);
      if (run === undefined) continue;
      this.#compare(this.#decide(run));
    }
  }

  /** Drops the text of a lane that closes, if the rules reject it. */
  #dropRejected(from: Producer, lane: string): boolean {
    const key = laneKey(from.id, from.turn, from.attempt, lane);
    const run = this.#pending.get(key)?.copy().takeAll(true);
    if (run === undefined || this.#decide(run).length > 0) return false;
    return this.#pending.delete(key);
  }

  /** A task that ended keeps no text; of an open one, everything up to `foldedSeq` is stored. */
  #assertFolded(): void {
    const { foldedSeq } = this.#task.aggregate;
    for (const pending of this.#pending.values()) {
      if (this.#isOver || pending.isEmpty || pending.firstSeq > foldedSeq) continue;
      const run = pending.takeAll(false);
      if (run !== undefined) this.#compare(this.#decide(run));
    }
  }

  /** The stored aggregate is what a takeover would continue from. */
  #assertAggregate(): void {
    const { aggregate } = this.#task;
    const found = this.#aggregate;
    if (this.#isOver || found === undefined) return;
    for (const [name, value] of Object.entries(found)) {
      if (PROGRESS_MEMBERS.has(name)) continue;
      const stored = (aggregate as Record<string, unknown>)[name];
      if (!isSameFact(stored, value)) this.#diverge(undefined, name);
    }
  }

  /** The relay failed the task, because it could not fold or store what the inputs led to: that depends on more than its inputs. */
  #isRelayFailure(): boolean {
    const rest = this.#stored.slice(this.#next).map(({ fact }) => fact);
    const last = rest.at(-1);
    if (this.#aggregate === undefined || last?.kind !== 'status.changed') return false;
    const { reason } = last.event.statusUpdate.metadata ?? {};
    if (!RELAY_REASONS.has(reason)) return false;
    const { facts } = failTask(this.#aggregate, String(reason), last.at);
    this.#isOver = facts.length === rest.length && facts.every((fact, index) => isSameFact(rest[index], fact));
    if (this.#isOver) this.#next = this.#stored.length;
    return this.#isOver;
  }

  #diverge(got: Fact | undefined, aggregateMember?: string): never {
    const stored = this.#stored[this.#next];
    const { state, turn, generation = 0 } = this.#aggregate ?? {};
    throw new Diverged({
      inputSeq: this.#inputSeq,
      ...(stored && { factSeq: stored.seq, expected: stored.fact }),
      ...(got && { got }),
      ...(aggregateMember && { aggregateMember }),
      before: { ...(state && { state }), ...(turn !== undefined && { turn }), generation },
    });
  }

  #textOf(from: Producer, lane: string): PendingText {
    const key = laneKey(from.id, from.turn, from.attempt, lane);
    const known = this.#pending.get(key);
    if (known !== undefined) return known;
    const created = new PendingText(from, lane);
    this.#pending.set(key, created);
    return created;
  }
}

const KINDS: ReadonlySet<string> = new Set<Fact['kind']>([
  'task.created',
  'message.received',
  'status.changed',
  'lane.opened',
  'artifact.updated',
  'call.started',
  'call.ended',
  'step.recorded',
  'remote-run.started',
]);

/** A later version may store facts of other kinds, which readers skip. */
function isKnownFact({ kind }: Fact): boolean {
  return KINDS.has(kind);
}

function laneKey(producer: string, turn: number, attempt: number, lane: string): string {
  return `${producer}\n${turn}.${attempt}\n${lane}`;
}

function keyOf({ producer, attempt, lane }: ArtifactUpdated, turn: number): string {
  return laneKey(producer, turn, attempt, lane);
}

function isSameProducer(one: Producer, other: Producer): boolean {
  return one.id === other.id && one.turn === other.turn && one.attempt === other.attempt;
}

function isEarlierRun({ id, turn, attempt }: Producer, from: Producer): boolean {
  return id === from.id && (turn < from.turn || (turn === from.turn && attempt < from.attempt));
}

function isSameRun(own: Producer, from: Producer, lane: string, input: AgentInput): boolean {
  return input.kind === 'close' && input.lane === lane && isSameProducer(own, from);
}

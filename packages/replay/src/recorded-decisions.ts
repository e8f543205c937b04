import { isTerminal } from '@hopline/a2a';
import type { ArtifactUpdated, ChunkProvenance, Fact, Producer, TaskAggregate } from '@hopline/events';
import { isKnownFact, isVisible } from '@hopline/events';
import {
  attemptLaneKey,
  type CommandQueue,
  NOT_ENCODABLE,
  type QueuedCommand,
  TASK_TOO_LARGE,
  TOO_LARGE,
  withMark,
} from '@hopline/fold';
import { type Command, decide, evolve, failTask, INPUT_UNREADABLE, type TextRun } from '@hopline/task';
import { isSameFact } from './same-fact.ts';
import type { StoredTask } from './stored-task.ts';

/** The first place at which today's rules and the log differ. */
export type Divergence = {
  /**
   * Raw sequence of the input from whose command the rules decided the fact or, if the log has a fact that no input explains, of the newest
   * input.
   */
  inputSeq: number;
  /** Log sequence of the record that should contain the fact. Absent: the log ends before it. */
  factSeq?: number;
  /** The stored fact; absent if the log has no fact there. */
  expected?: Fact;
  /** The fact that the rules decide; absent if they decide none. */
  got?: Fact;
  /** Set if the facts are the same but the stored aggregate does not follow from them: the member that differs. */
  aggregateMember?: string;
  /** The task before the difference. */
  before: { state?: string; turn?: number; generation: number };
};

export class Diverged extends Error {
  readonly divergence: Divergence;

  constructor(divergence: Divergence) {
    super('diverged');
    this.divergence = divergence;
  }
}

/** Reasons of failures that a relay causes itself, because it could not fold the inputs or store the facts. */
const RELAY_REASONS: ReadonlySet<unknown> = new Set([TOO_LARGE, TASK_TOO_LARGE, NOT_ENCODABLE, INPUT_UNREADABLE]);
/** Members of the aggregate that depend on the content of one append: ordinals, sequences and sizes. */
const PROGRESS_MEMBERS: ReadonlySet<string> = new Set(['producers', 'foldedSeq', 'lastNSeq', 'storedBytes']);

/** Stored members that a replay may lack. A later version may store others, which are not compared. */
const OPTIONAL_MEMBERS = [
  'owner',
  'hasHistory',
  'inputRequest',
  'authRequest',
  'queued',
  'steps',
] as const satisfies readonly (keyof TaskAggregate)[];

type StoredFact = { fact: Fact; seq: number; at: number };

/** A stored fact with the text of one run. */
type StoredChunk = ArtifactUpdated & { chunk: ChunkProvenance };

/**
 * Decides each command as soon as the fold queues it, at the time of the next stored fact, and compares its facts with the stored ones.
 * Throws Diverged at the first difference.
 */
export class RecordedDecisions implements CommandQueue {
  /** Raw sequence of the input that is read now. */
  inputSeq = 0;
  /** Undefined, because commands do not wait here. */
  readonly oldestSeq = undefined;
  readonly #task: StoredTask;
  readonly #stored: StoredFact[];
  /** Index of the next stored fact. */
  #next = 0;
  #aggregate: TaskAggregate | undefined;
  /** The lane that the newest run closes. Set until the close input itself is read. */
  #closedByRun: string | undefined;
  #isOver = false;

  constructor(task: StoredTask) {
    this.#task = task;
    this.#stored = task.facts.flatMap(({ seq, record }) =>
      record.facts.filter(isKnownFact).map(fact => ({ fact, seq, at: fact.at })),
    );
  }

  /** The task after the facts so far. */
  get aggregate(): TaskAggregate | undefined {
    return this.#aggregate;
  }

  /** Time of the next decision, taken from the stored fact because only the relay's clock knew it. */
  get at(): number {
    return this.#stored[this.#next]?.at ?? this.#aggregate?.at ?? this.#task.inputs[0]?.storedAt ?? 0;
  }

  /** True if the relay itself made the task fail. Later facts are then not verified. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The next stored fact, if it is a chunk of text. */
  get nextChunk(): StoredChunk | undefined {
    const fact = this.#isOver ? undefined : this.#stored[this.#next]?.fact;
    return fact !== undefined && isChunk(fact) ? fact : undefined;
  }

  /** Whether the fact after `nextChunk` belongs to the same decision and closes the lane. */
  get isNextChunkClosed(): boolean {
    const chunk = this.nextChunk;
    const fact = this.#stored[this.#next + 1]?.fact;
    return fact?.kind === 'artifact.updated' && fact.lane === chunk?.lane && fact.at === chunk.at && fact.chunk === undefined;
  }

  /** Whether the task is open and no stored record covers the input with this sequence or a later one. */
  isUndecided(seq: number): boolean {
    const { foldedSeq, state } = this.#task.aggregate;
    return seq > foldedSeq && this.#next === this.#stored.length && !isTerminal(state);
  }

  /** The facts that a command would make now. */
  decide(command: Command): readonly Fact[] {
    return decide(this.#aggregate, command, this.at).facts;
  }

  push(command: Command, seq: number, mark?: QueuedCommand['mark']): void {
    this.#closedByRun = undefined;
    if (this.#isOver || this.isUndecided(seq)) return;
    const { facts, rejected } = decide(this.#aggregate, command, this.at);
    this.#compare(facts);
    this.#aggregate = withMark(this.#aggregate, mark, rejected);
  }

  pushRun(run: TextRun): void {
    this.push(run, run.chunk.firstSeq);
    this.#closedByRun = run.last ? attemptLaneKey(run.from, run.lane) : undefined;
  }

  closeWithRun(from: Producer, lane: string, mark: QueuedCommand['mark']): boolean {
    if (this.#closedByRun !== attemptLaneKey(from, lane)) return false;
    this.#closedByRun = undefined;
    this.#aggregate = withMark(this.#aggregate, mark, undefined);
    return true;
  }

  /** Throws Diverged if the rules have rejected the run for which the next stored chunk was made. */
  assertChunkDecided(chunk: StoredChunk): void {
    if (this.nextChunk === chunk) this.#diverge(undefined);
  }

  /** Call it when all inputs are read. Throws Diverged if a fact is left, or if a takeover would not continue from the stored aggregate. */
  assertEnd(): void {
    if (this.#next < this.#stored.length && !this.#isRelayFailure()) this.#diverge(undefined);
    const { aggregate } = this.#task;
    const found = this.#aggregate;
    if (this.#isOver || found === undefined) return;
    for (const name of new Set([...Object.keys(found), ...OPTIONAL_MEMBERS])) {
      if (PROGRESS_MEMBERS.has(name)) continue;
      const [stored, replayed] = [aggregate, found].map(one => (one as Record<string, unknown>)[name]);
      if (!isSameFact(stored, replayed)) this.#diverge(undefined, name);
    }
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

  /** The generation of the first event after a loss of records, which the relay's clock determined. */
  #lossBefore(stored: Fact | undefined): { lostAfter: number; skipped: number } | undefined {
    if (stored === undefined || !isVisible(stored) || stored.lostAfter === undefined) return undefined;
    const { generation, lostAfter } = stored;
    return lostAfter === this.#aggregate?.generation ? { lostAfter, skipped: generation - lostAfter - 1 } : undefined;
  }

  /**
   * Whether the relay made the task fail because it could not fold its inputs or store its facts. That depends on more than the
   * inputs, so it is not verified.
   */
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
      inputSeq: this.inputSeq,
      ...(stored && { factSeq: stored.seq, expected: stored.fact }),
      ...(got && { got }),
      ...(aggregateMember && { aggregateMember }),
      before: { ...(state && { state }), ...(turn !== undefined && { turn }), generation },
    });
  }
}

function isChunk(fact: Fact): fact is StoredChunk {
  return fact.kind === 'artifact.updated' && fact.chunk !== undefined;
}

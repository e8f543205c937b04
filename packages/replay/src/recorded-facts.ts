import { isTerminal } from '@hopline/a2a';
import type { ArtifactUpdated, ChunkProvenance, Fact, Producer, TaskAggregate } from '@hopline/events';
import { isVisible } from '@hopline/events';
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
  /** Raw sequence of the input whose command the rules decided; of the newest one, where the log has a fact that no input explains. */
  inputSeq: number;
  /** Log sequence of the record that should hold the fact. Absent: the log ends before it. */
  factSeq?: number;
  /** The stored fact; absent: the log has none there. */
  expected?: Fact;
  /** The fact that the rules decide. Absent: they decide none. */
  got?: Fact;
  /** The facts are the same, and the stored aggregate is not what follows from them: the member that differs. */
  aggregateMember?: string;
  /** The task before. */
  before: { state?: string; turn?: number; generation: number };
};

export class Diverged extends Error {
  readonly divergence: Divergence;

  constructor(divergence: Divergence) {
    super('diverged');
    this.divergence = divergence;
  }
}

/** Reasons that a relay gives by itself, when it could not fold or store what the inputs led to. */
const RELAY_REASONS: ReadonlySet<unknown> = new Set([TOO_LARGE, TASK_TOO_LARGE, NOT_ENCODABLE, INPUT_UNREADABLE]);
/** Members of the aggregate that depend on the content of one append: ordinals, sequences and sizes. */
const PROGRESS_MEMBERS: ReadonlySet<string> = new Set(['producers', 'foldedSeq', 'lastNSeq', 'storedBytes']);

type StoredFact = { fact: Fact; seq: number; at: number };

/** A stored fact with the text that one run brought. */
type StoredChunk = ArtifactUpdated & { chunk: ChunkProvenance };

/**
 * Decides each command as soon as the fold queues it, at the time of the next stored fact, and holds its facts against the stored
 * ones. Throws Diverged at the first difference.
 */
export class RecordedFacts implements CommandQueue {
  /** Raw sequence of the input that is read now. */
  inputSeq = 0;
  /** Nothing waits here. */
  readonly oldestSeq = undefined;
  readonly #task: StoredTask;
  readonly #rules: typeof decide;
  readonly #stored: StoredFact[];
  /** Index of the next stored fact. */
  #next = 0;
  #aggregate: TaskAggregate | undefined;
  /** The lane that the newest run closes, until the closing itself is read. */
  #closedByRun: string | undefined;
  #isOver = false;

  constructor(task: StoredTask, rules: typeof decide = decide) {
    this.#task = task;
    this.#rules = rules;
    this.#stored = task.facts.flatMap(({ seq, record }) =>
      record.facts.filter(isKnownFact).map(fact => ({ fact, seq, at: fact.at })),
    );
  }

  /** The task as the facts so far have left it. */
  get aggregate(): TaskAggregate | undefined {
    return this.#aggregate;
  }

  /** Time of the next decision: only the relay's clock knew it. */
  get at(): number {
    return this.#stored[this.#next]?.at ?? this.#aggregate?.at ?? this.#task.inputs[0]?.storedAt ?? 0;
  }

  /** The relay has failed the task by itself: what follows is not verified. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The next stored fact, if it is a chunk of text. */
  get nextChunk(): StoredChunk | undefined {
    const fact = this.#isOver ? undefined : this.#stored[this.#next]?.fact;
    return fact !== undefined && isChunk(fact) ? fact : undefined;
  }

  /** The fact after `nextChunk` may be of the same decision, and closes the lane. */
  get isNextChunkClosed(): boolean {
    const chunk = this.nextChunk;
    const fact = this.#stored[this.#next + 1]?.fact;
    return fact?.kind === 'artifact.updated' && fact.lane === chunk?.lane && fact.at === chunk.at && fact.chunk === undefined;
  }

  /** The task is open, and nothing that is stored of it contains the input with this sequence or one after it. */
  isUndecided(seq: number): boolean {
    const { foldedSeq, state } = this.#task.aggregate;
    return seq > foldedSeq && this.#next === this.#stored.length && !isTerminal(state);
  }

  /** The facts that a command would make now. */
  decide(command: Command): readonly Fact[] {
    return this.#rules(this.#aggregate, command, this.at).facts;
  }

  push(command: Command, seq: number, mark?: QueuedCommand['mark']): void {
    this.#closedByRun = undefined;
    if (this.#isOver || this.isUndecided(seq)) return;
    const { facts, rejected } = this.#rules(this.#aggregate, command, this.at);
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

  /** The stored chunk that comes next is that of a run, and the rules reject the run. */
  assertChunkDecided(chunk: StoredChunk): void {
    if (this.nextChunk === chunk) this.#diverge(undefined);
  }

  /** All inputs are read: no fact is left, and the stored aggregate is what a takeover would continue from. */
  assertEnd(): void {
    if (this.#next < this.#stored.length && !this.#isRelayFailure()) this.#diverge(undefined);
    const { aggregate } = this.#task;
    const found = this.#aggregate;
    if (this.#isOver || found === undefined) return;
    for (const [name, value] of Object.entries(found)) {
      if (PROGRESS_MEMBERS.has(name)) continue;
      const stored = (aggregate as Record<string, unknown>)[name];
      if (!isSameFact(stored, value)) this.#diverge(undefined, name);
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

  /** The relay's clock decided the generation of the first event after a loss of records. */
  #lossBefore(stored: Fact | undefined): { lostAfter: number; skipped: number } | undefined {
    if (stored === undefined || !isVisible(stored) || stored.lostAfter === undefined) return undefined;
    const { generation, lostAfter } = stored;
    return lostAfter === this.#aggregate?.generation ? { lostAfter, skipped: generation - lostAfter - 1 } : undefined;
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
      inputSeq: this.inputSeq,
      ...(stored && { factSeq: stored.seq, expected: stored.fact }),
      ...(got && { got }),
      ...(aggregateMember && { aggregateMember }),
      before: { ...(state && { state }), ...(turn !== undefined && { turn }), generation },
    });
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

function isChunk(fact: Fact): fact is StoredChunk {
  return fact.kind === 'artifact.updated' && fact.chunk !== undefined;
}

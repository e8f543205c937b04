import type { Producer } from '@hopline/events';
import type { Command, TextRun } from '@hopline/task';

/** A command that waits for its append. */
export type QueuedCommand = {
  command: Command;
  /** Input sequence of the oldest record in it. */
  readonly firstSeq: number;
  /** Milliseconds on the clock of holds at which its oldest part was queued. */
  queuedMs: number;
  /** Set by inputs other than text: everything of the producer up to ordinal `n` is folded with this command. */
  mark: { from: Producer; n: number } | undefined;
  /** UTF-16 units of its text, or of the JSON of another input, for the bounds. */
  size: number;
};

/**
 * Receives the commands that the fold of a task produces: the relay's queue of appends, or a replay that decides each command at once.
 */
export interface CommandQueue {
  /** Input sequence of the oldest record in the queue. */
  readonly oldestSeq: number | undefined;

  /** Adds a command. `mark`: set for an input that is not text. */
  push(command: Command, firstSeq: number, mark?: QueuedCommand['mark']): void;

  pushRun(run: TextRun): void;

  /** Lets a queued run of the lane close it. Returns false if no run can; the closing is then a command of its own. */
  closeWithRun(from: Producer, lane: string, mark: QueuedCommand['mark']): boolean;
}

/** UTF-16 units of text in one record: large enough that a burst is one append, and far below the log's record limit. */
const RECORD_TEXT_UNITS_MAX = 128 * 1024;

/** Reason of chunks that contain one token each (packages/coalesce). */
const PASS_THROUGH = 'each';

/** Rough size of a fact without its content: names, ids, JSON. Used only for bounds. */
const COMMAND_OVERHEAD_UNITS = 512;

/**
 * Commands in the order in which they become facts. Runs of one lane that meet here while an append is in flight are merged, so that load
 * by itself makes chunks larger. In pass-through mode (event cost 0) they stay apart, because each token must be a separate frame (S1-27).
 */
export class AppendQueue implements CommandQueue {
  readonly #now: () => number;
  readonly #runUnitsMax: number;
  #commands: QueuedCommand[] = [];
  /**
   * The commands that are not followed by an older one, so that the first of them is the oldest of all. A command's `firstSeq` never
   * changes.
   */
  #oldest: QueuedCommand[] = [];
  #size = 0;

  /** `now`: monotonic milliseconds, the clock of holds. `runUnitsMax`: UTF-16 units up to which runs are merged. */
  constructor(now: () => number, runUnitsMax = RECORD_TEXT_UNITS_MAX) {
    this.#now = now;
    this.#runUnitsMax = runUnitsMax;
  }

  get length(): number {
    return this.#commands.length;
  }

  /** UTF-16 units in the queue. */
  get size(): number {
    return this.#size;
  }

  /**
   * Input sequence of the oldest record in the queue. It need not belong to the head, because one lane's text may have been held longer
   * than another's.
   */
  get oldestSeq(): number | undefined {
    return this.#oldest[0]?.firstSeq;
  }

  push(command: Command, firstSeq: number, mark?: QueuedCommand['mark']): void {
    const size = COMMAND_OVERHEAD_UNITS + unitsOf(command);
    this.#size += size;
    const queued = { command, firstSeq, queuedMs: this.#now(), mark, size };
    this.#commands.push(queued);
    while (this.#oldest.length > 0 && this.#oldest.at(-1)!.firstSeq > firstSeq) this.#oldest.pop();
    this.#oldest.push(queued);
  }

  pushRun(run: TextRun): void {
    const last = this.#commands.at(-1);
    if (
      run.chunk.reason !== PASS_THROUGH &&
      last?.command.kind === 'run' &&
      isSameLane(last.command, run) &&
      !last.command.last &&
      last.command.text.length + run.text.length <= this.#runUnitsMax
    ) {
      last.command = mergeRuns(last.command, run);
      last.size += run.text.length;
      this.#size += run.text.length;
    } else {
      this.push(run, run.chunk.firstSeq);
    }
  }

  /**
   * Lets the newest queued run of a lane close it, which saves an empty chunk. Returns false if a command of another kind follows every run
   * of the lane.
   */
  closeWithRun(from: Producer, lane: string, mark: QueuedCommand['mark']): boolean {
    for (let index = this.#commands.length - 1; index >= 0; index--) {
      const queued = this.#commands[index]!;
      if (queued.command.kind !== 'run' || queued.mark !== undefined) return false;
      if (isSameLane(queued.command, { lane, from })) {
        queued.command = { ...queued.command, last: true };
        // The mark covers everything of the producer before it, so it belongs to the newest command.
        this.#commands.at(-1)!.mark = mark;
        return true;
      }
    }
    return false;
  }

  /** Drops all commands. */
  clear(): void {
    this.#commands = [];
    this.#oldest = [];
    this.#size = 0;
  }

  /**
   * Takes commands from the head: at least one, and about `unitsMax` units at most. A copy-forward is taken by itself. Stored together with
   * other commands, it would be marked as folded before it is done, and the next owner would skip it.
   */
  take(unitsMax = RECORD_TEXT_UNITS_MAX): QueuedCommand[] {
    let size = 0;
    let count = 0;
    for (const { command, size: more } of this.#commands) {
      if (count > 0 && (size + more > unitsMax || command.kind === 'copy-forward')) break;
      size += more;
      count++;
      if (command.kind === 'copy-forward') break;
    }
    const taken = this.#commands.slice(0, count);
    this.#commands = this.#commands.slice(count);
    const gone = new Set(taken);
    this.#oldest = this.#oldest.filter(queued => !gone.has(queued));
    this.#size -= size;
    return taken;
  }
}

/** Counts commands of every kind, because two messages or data parts that each take half a record do not fit into one record. */
function unitsOf(command: Command): number {
  if (command.kind === 'run') return command.text.length;
  return 'input' in command ? JSON.stringify(command.input).length : 0;
}

function isSameLane(a: Pick<TextRun, 'lane' | 'from'>, b: Pick<TextRun, 'lane' | 'from'>): boolean {
  return a.lane === b.lane && a.from.id === b.from.id && a.from.attempt === b.from.attempt && a.from.turn === b.from.turn;
}

function mergeRuns(a: TextRun, b: TextRun): TextRun {
  const { firstSeq, count, heldMs, firstAt, firstTrace } = a.chunk;
  const chunk: TextRun['chunk'] = {
    ...b.chunk,
    firstSeq,
    count: count + b.chunk.count,
    // These members describe the oldest token, which is in the first run.
    heldMs,
    firstAt,
    ...(firstTrace && { firstTrace }),
  };
  return { ...b, text: a.text + b.text, n: b.n, chunk };
}

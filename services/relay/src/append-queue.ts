import type { Producer } from '@hopline/events';
import type { Command, TextRun } from '@hopline/task';

/** An item that waits for its append, with what it marks as folded. */
export type Queued = {
  item: Command;
  /** Raw sequence of the oldest and newest record in it. */
  firstSeq: number;
  /** Set by non-text inputs: everything of the producer up to ordinal `n` is folded with this item. */
  mark: { from: Producer; n: number } | undefined;
  /** UTF-16 units of its text, or of the JSON of another input, for the bounds. */
  size: number;
};

/** Reason of chunks that are one token each (packages/coalesce). */
const PASS_THROUGH = 'each';

/** Rough size of what an item's fact has beside it: names, ids, JSON around it. Only bounds use it. */
const ITEM_OVERHEAD_UNITS = 512;

/**
 * Items in the order in which they must become facts. While an append is in flight, runs of the same lane that meet here become one:
 * load makes chunks larger by itself. In pass-through (event cost 0) they stay apart: a frame for each token is what was asked for (S1-27).
 */
export class AppendQueue {
  #items: Queued[] = [];
  #size = 0;

  get length(): number {
    return this.#items.length;
  }

  /** UTF-16 units waiting. */
  get size(): number {
    return this.#size;
  }

  /** Raw sequence of the oldest record that waits. Not always that of the head: a lane's text may have been held longer than another's. */
  get oldest(): number | undefined {
    let oldest: number | undefined;
    for (const { firstSeq } of this.#items) {
      if (oldest === undefined || firstSeq < oldest) oldest = firstSeq;
    }
    return oldest;
  }

  push(item: Command, firstSeq: number, mark?: Queued['mark']): void {
    const size = ITEM_OVERHEAD_UNITS + unitsOf(item);
    this.#size += size;
    this.#items.push({ item, firstSeq, mark, size });
  }

  pushRun(run: TextRun, unitsMax: number): void {
    const last = this.#items.at(-1);
    if (
      run.chunk.reason !== PASS_THROUGH &&
      last?.item.kind === 'run' &&
      sameLane(last.item, run) &&
      !last.item.last &&
      last.item.text.length + run.text.length <= unitsMax
    ) {
      last.item = merged(last.item, run);
      last.size += run.text.length;
      this.#size += run.text.length;
    } else {
      this.push(run, run.chunk.firstSeq);
    }
  }

  /** Lets the newest waiting run of a lane close it, so that no empty chunk is needed (C-2). False when no run of it waits behind the last other item. */
  closeWithRun(from: Producer, lane: string, mark: Queued['mark']): boolean {
    for (let index = this.#items.length - 1; index >= 0; index--) {
      const queued = this.#items[index]!;
      if (queued.item.kind !== 'run' || queued.mark !== undefined) return false;
      if (queued.item.lane === lane && queued.item.from.id === from.id && queued.item.from.attempt === from.attempt) {
        queued.item = { ...queued.item, last: true };
        // The mark says that everything of the producer before it is folded: it must sit on the newest item.
        this.#items.at(-1)!.mark = mark;
        return true;
      }
    }
    return false;
  }

  /**
   * Takes items from the head, at least one, at most about `unitsMax` units. A carry is taken alone: a record that was stored with it would say that it is folded in before it has happened, and whoever
   * takes over would pass it over.
   */
  take(unitsMax: number): Queued[] {
    let size = 0;
    let count = 0;
    for (const { item, size: more } of this.#items) {
      if (count > 0 && (size + more > unitsMax || item.kind === 'copy-forward')) break;
      size += more;
      count++;
      if (item.kind === 'copy-forward') break;
    }
    const taken = this.#items.slice(0, count);
    this.#items = this.#items.slice(count);
    this.#size -= size;
    return taken;
  }
}

/** Whatever the kind: two messages, or two data parts, of half a record's size each do not fit into one record. */
function unitsOf(item: Command): number {
  if (item.kind === 'run') return item.text.length;
  return 'input' in item ? JSON.stringify(item.input).length : 0;
}

function sameLane(a: TextRun, b: TextRun): boolean {
  return a.lane === b.lane && a.from.id === b.from.id && a.from.attempt === b.from.attempt && a.from.turn === b.from.turn;
}

function merged(a: TextRun, b: TextRun): TextRun {
  const { firstSeq: first, count, heldMs, firstAt, firstTrace } = a.chunk;
  const chunk = {
    ...b.chunk,
    first,
    count: count + b.chunk.count,
    heldMs: Math.max(heldMs, b.chunk.heldMs),
    firstAt,
    ...(firstTrace && { firstTrace }),
  };
  return { ...b, text: a.text + b.text, n: b.n, chunk };
}

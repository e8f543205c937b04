import { LINE } from './lines.ts';
import type { Logger } from './logger.ts';

/** Milliseconds in which the changes of several shards are collected into one line: a takeover ends within one round of leases. */
export const SHARD_LINE_MS = 250;

/** Log lines of shards that change their owner: one for all shards of a takeover or a release, and one for each at level debug. */
export class ShardLines {
  readonly #logger: Logger;
  /** Shards by cause; undefined: they were released. */
  readonly #waiting = new Map<string | undefined, number[]>();
  #timer: NodeJS.Timeout | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** `cause`: why the shard begins here. `rawSeq`: its checkpoint, if it has one. */
  acquired(shard: number, cause: string, rawSeq?: number): void {
    this.#logger.debug({ shard, raw_seq: rawSeq, cause }, 'shard acquired');
    this.#add(shard, cause);
  }

  released(shard: number, rawSeq?: number): void {
    this.#logger.debug({ shard, raw_seq: rawSeq }, 'shard released');
    this.#add(shard, undefined);
  }

  /** Writes the waiting lines. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [cause, shards] of this.#waiting) {
      const fields = { shards: shards.length, shard_list: rangesOf(shards) };
      if (cause === undefined) this.#logger.info(fields, 'shards released');
      else this.#logger.info({ ...fields, cause }, LINE.shardsAcquired);
    }
    this.#waiting.clear();
  }

  #add(shard: number, cause: string | undefined): void {
    const waiting = this.#waiting.get(cause);
    if (waiting === undefined) this.#waiting.set(cause, [shard]);
    else waiting.push(shard);
    this.#timer ??= setTimeout(() => this.flush(), SHARD_LINE_MS).unref();
  }
}

/** `0-3,7` */
function rangesOf(shards: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const shard of [...new Set(shards)].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last?.[1] === shard - 1) last[1] = shard;
    else ranges.push([shard, shard]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',');
}

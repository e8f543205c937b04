import { setTimeout as sleep } from 'node:timers/promises';
import type { LaneSignals, Verdict } from './delivery.ts';

/** Longest wait of one timer, milliseconds; a later time is waited for in pieces. */
const TIMER_MS_MAX = 60 * 60_000;

export type LanesOptions = {
  /** Lanes at work at one time; the others wait for a place, in the order in which they came. */
  lanesMax: number;
  run: (key: string, signals: LaneSignals) => Promise<Verdict>;
  /** A lane ended with an error: when it may begin again, milliseconds from now. */
  failed: (shard: number, error: unknown) => number;
  /** Epoch milliseconds. */
  now: () => number;
  /** A lane begins to work (+1) or stops (-1). */
  working?: (change: 1 | -1) => void;
};

type Lane = {
  readonly key: string;
  readonly shard: number;
  /** Of its configuration. */
  readonly revision: number;
  readonly leaving: AbortController;
  readonly cut: AbortController;
  /** Resolves when it runs no more. */
  done: Promise<void>;
  timer: NodeJS.Timeout | undefined;
};

/** The webhooks of this process's shards: each in one lane that works, waits for a place, or waits until it may try again. Memory grows with them and with nothing else. */
export class Lanes {
  readonly #options: LanesOptions;
  readonly #lanes = new Map<string, Lane>();
  /** Those that want a place, oldest first. */
  readonly #queue = new Set<Lane>();
  /** Of those that were ended and may still run, by key. */
  readonly #ending = new Map<string, Promise<void>>();
  #working = 0;

  constructor(options: LanesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#lanes.size;
  }

  /** The configuration of this revision is there. One of another revision is followed no longer. */
  want(key: string, shard: number, revision: number): void {
    const known = this.#lanes.get(key);
    if (known !== undefined && known.revision >= revision) return;
    this.drop(key);
    const lane: Lane = {
      key,
      shard,
      revision,
      leaving: new AbortController(),
      cut: new AbortController(),
      // The lane before has been cut, and must not write its last progress after this one has read it.
      done: this.#ending.get(key) ?? Promise.resolve(),
      timer: undefined,
    };
    this.#lanes.set(key, lane);
    void lane.done.then(() => this.#enqueue(lane));
  }

  /** The configuration is gone: what is on its way is cut. */
  drop(key: string): void {
    const lane = this.#lanes.get(key);
    if (lane !== undefined) this.#end(lane);
  }

  /** Of all keys only these are still there. */
  retain(keys: ReadonlySet<string>): void {
    for (const key of [...this.#lanes.keys()]) if (!keys.has(key)) this.drop(key);
  }

  /** Lets a shard's lanes go: what is on its way may still be taken for so long, milliseconds, then it is cut. */
  async release(shard: number, graceMs: number): Promise<void> {
    await this.#leave(
      [...this.#lanes.values()].filter(lane => lane.shard === shard),
      graceMs,
    );
  }

  async stop(graceMs: number): Promise<void> {
    await this.#leave([...this.#lanes.values()], graceMs);
  }

  async #leave(lanes: Lane[], graceMs: number): Promise<void> {
    for (const lane of lanes) lane.leaving.abort();
    const all = Promise.all(lanes.map(lane => lane.done));
    const grace = new AbortController();
    await Promise.race([all, sleep(graceMs, undefined, { signal: grace.signal }).catch(() => {})]);
    grace.abort();
    for (const lane of lanes) this.#end(lane);
    await all;
  }

  #end(lane: Lane): void {
    lane.leaving.abort();
    lane.cut.abort();
    clearTimeout(lane.timer);
    this.#queue.delete(lane);
    if (this.#lanes.get(lane.key) === lane) this.#lanes.delete(lane.key);
    const { key, done } = lane;
    this.#ending.set(key, done);
    void done.then(() => {
      if (this.#ending.get(key) === done) this.#ending.delete(key);
    });
  }

  #enqueue(lane: Lane): void {
    if (lane.leaving.signal.aborted) return;
    this.#queue.add(lane);
    this.#fill();
  }

  #fill(): void {
    for (const lane of this.#queue) {
      if (this.#working >= this.#options.lanesMax) return;
      this.#queue.delete(lane);
      lane.done = this.#run(lane);
    }
  }

  async #run(lane: Lane): Promise<void> {
    const { run, failed, now, working } = this.#options;
    this.#working += 1;
    working?.(1);
    const crowded = () => this.#queue.size > 0;
    const again = await run(lane.key, { leaving: lane.leaving.signal, cut: lane.cut.signal, crowded }).then(
      verdict => this.#next(verdict),
      error => (lane.leaving.signal.aborted ? undefined : now() + failed(lane.shard, error)),
    );
    this.#working -= 1;
    working?.(-1);
    if (again === undefined) this.#end(lane);
    else this.#wait(lane, again);
    this.#fill();
  }

  /** When a lane works again, epoch milliseconds; undefined: never. */
  #next(verdict: Verdict): number | undefined {
    if (verdict === 'parked') return 0;
    return typeof verdict === 'object' ? verdict.retryAt : undefined;
  }

  #wait(lane: Lane, until: number): void {
    const ms = until - this.#options.now();
    if (lane.leaving.signal.aborted) return;
    if (ms <= 0) this.#enqueue(lane);
    else lane.timer = setTimeout(() => this.#wait(lane, until), Math.min(ms, TIMER_MS_MAX));
  }
}

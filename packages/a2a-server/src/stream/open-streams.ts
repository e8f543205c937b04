import { A2AError } from '@hopline/a2a';
import type { Owner } from '@hopline/events';
import type { HopMetrics } from '@hopline/telemetry';
import type { Limits } from '../limits.ts';
import type { Quotas, SlotKind } from '../quotas/quotas.ts';

/** How the process keeps an open stream alive and ends it. */
export type OpenStream = {
  keepAlive(): void;
  /**
   * When the record from which the stream continues to read was stored, in epoch milliseconds; undefined if it needs no record of the log.
   */
  readonly neededSince: number | undefined;
  /** Asks the client to reconnect, and ends the stream. */
  drain(): void;
  cut(): void;
};

/**
 * All streams get their comment within half of the interval, in at most this many parts. A write takes 15 µs, so writing to 10,000 idle
 * clients at once would delay every token of this process by 150 ms.
 */
const KEPT_PARTS = 64;
const KEPT_AT_ONCE_MIN = 64;

/** How long a client that reads nothing can delay draining before its stream is cut. */
const DRAIN_MS_MAX = 2_000;

/**
 * All streams and waiting requests of this process. Their number is bounded, comments keep them alive, and they are ended in an orderly way
 * when the process drains.
 */
export class OpenStreams {
  readonly #limits: Limits;
  readonly #metrics: HopMetrics | undefined;
  readonly #quotas: Quotas;
  readonly #streams = new Set<OpenStream>();
  readonly #draining = new AbortController();
  readonly #heartbeat: NodeJS.Timeout;
  /** Timer of the next part of the streams; undefined when all streams have received their comment. */
  #keeping: NodeJS.Timeout | undefined;
  readonly #taken: Record<SlotKind, number> = { stream: 0, request: 0 };

  constructor(limits: Limits, metrics: HopMetrics | undefined, quotas: Quotas) {
    this.#limits = limits;
    this.#metrics = metrics;
    this.#quotas = quotas;
    this.#heartbeat = setInterval(() => this.#keepAlive(), limits.heartbeatMs).unref();
    metrics?.streamsOldestNeeded.observe(() => this.#oldestNeeded());
  }

  /** Aborts when the process drains. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  get count(): number {
    return this.#taken.stream + this.#taken.request;
  }

  /**
   * Reserves a slot for a caller; the returned function releases it. Requests have the same number of slots, separate from those of
   * streams, so that a cancel never waits for a stream to end. Throws UNAVAILABLE when all are taken or the process drains, and
   * QUOTA_EXCEEDED when the caller has used up its share.
   */
  acquire(caller: Owner, kind: SlotKind): () => void {
    if (this.#draining.signal.aborted) throw new A2AError('UNAVAILABLE', { detail: 'this server is shutting down; retry' });
    if (this.#taken[kind] >= this.#limits.streamsMax)
      throw new A2AError('UNAVAILABLE', { detail: `too many open ${kind}s; retry later` });
    const release = this.#quotas.acquire(caller, kind);
    this.#taken[kind] += 1;
    if (kind === 'stream') this.#metrics?.openStreams.add(1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      release();
      this.#taken[kind] -= 1;
      if (kind === 'stream') this.#metrics?.openStreams.add(-1);
    };
  }

  add(stream: OpenStream): void {
    this.#streams.add(stream);
  }

  remove(stream: OpenStream): void {
    this.#streams.delete(stream);
  }

  /** Ends every stream and every wait. Otherwise closing the HTTP server would wait for them indefinitely. */
  drain(): void {
    clearInterval(this.#heartbeat);
    clearTimeout(this.#keeping);
    this.#draining.abort();
    for (const stream of this.#streams) stream.drain();
    setTimeout(() => {
      for (const stream of this.#streams) stream.cut();
    }, DRAIN_MS_MAX).unref();
  }

  /** Value and labels of the gauge; none while no stream is behind. */
  #oldestNeeded(): [number, object][] {
    let oldest = Number.POSITIVE_INFINITY;
    for (const { neededSince = oldest } of this.#streams) oldest = Math.min(oldest, neededSince);
    return oldest === Number.POSITIVE_INFINITY ? [] : [[oldest / 1_000, {}]];
  }

  #keepAlive(): void {
    // If the process is late, the previous round is completed first, so that no stream is left out.
    if (this.#keeping !== undefined) return;
    const count = Math.max(KEPT_AT_ONCE_MIN, Math.ceil(this.#streams.size / KEPT_PARTS));
    this.#keepPart([...this.#streams], 0, count);
  }

  #keepPart(streams: readonly OpenStream[], from: number, count: number): void {
    for (const stream of streams.slice(from, from + count)) if (this.#streams.has(stream)) stream.keepAlive();
    const next = () => this.#keepPart(streams, from + count, count);
    const isOver = from + count >= streams.length;
    this.#keeping = isOver ? undefined : setTimeout(next, this.#limits.heartbeatMs / (2 * KEPT_PARTS)).unref();
  }
}

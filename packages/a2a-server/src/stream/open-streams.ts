import { A2AError } from '@hopline/a2a';
import type { HopMetrics } from '@hopline/telemetry';
import type { Limits } from '../limits.ts';

/** What the process does with an open stream: keep it alive and end it. */
export type OpenStream = {
  keepAlive(): void;
  /** Asks the client to reconnect, and ends the stream. */
  drain(): void;
  cut(): void;
};

/** How long a client that reads nothing delays draining before its stream is cut; milliseconds. */
const DRAIN_MS_MAX = 2_000;

/**
 * All streams and waiting requests of this process: bounded, kept alive by comments, ended in order when the process drains.
 */
export class OpenStreams {
  readonly #limits: Limits;
  readonly #metrics: HopMetrics | undefined;
  readonly #streams = new Set<OpenStream>();
  readonly #draining = new AbortController();
  readonly #heartbeat: NodeJS.Timeout;
  #count = 0;

  constructor(limits: Limits, metrics: HopMetrics | undefined) {
    this.#limits = limits;
    this.#metrics = metrics;
    this.#heartbeat = setInterval(() => this.#keepAlive(), limits.heartbeatMs).unref();
  }

  /** Aborts when the process drains. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Reserves a slot for a stream or a waiting request; the returned function releases it. Throws UNAVAILABLE when all are
   * taken.
   */
  acquire(): () => void {
    if (this.#draining.signal.aborted || this.#count >= this.#limits.streamsMax)
      throw new A2AError('UNAVAILABLE', { detail: 'too many open streams; retry later' });
    this.#count += 1;
    this.#metrics?.openStreams.add(1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#count -= 1;
      this.#metrics?.openStreams.add(-1);
    };
  }

  add(stream: OpenStream): () => void {
    this.#streams.add(stream);
    return () => this.#streams.delete(stream);
  }

  /** Ends every stream and every wait. Otherwise closing the HTTP server would wait for them indefinitely. */
  drain(): void {
    clearInterval(this.#heartbeat);
    this.#draining.abort();
    for (const stream of this.#streams) stream.drain();
    setTimeout(() => {
      for (const stream of this.#streams) stream.cut();
    }, DRAIN_MS_MAX).unref();
  }

  #keepAlive(): void {
    for (const stream of this.#streams) stream.keepAlive();
  }
}

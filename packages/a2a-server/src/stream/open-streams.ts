import { A2AError } from '@hopline/a2a';
import type { HopMetrics } from '@hopline/telemetry';
import type { Limits } from '../limits.ts';

/** What the process needs of a stream to keep it alive and to end it. */
export type OpenStream = {
  keepAlive(): void;
  /** Tells the client to come back, and ends. */
  drain(): void;
  cut(): void;
};

/** A client that takes nothing while the process drains is cut after this; milliseconds. */
const DRAIN_MS_MAX = 2_000;

/** Everything that is open towards clients in this process: bounded, kept alive by comments, ended in order when the process drains. */
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
    this.#heartbeat = setInterval(() => this.#beat(), limits.heartbeatMs).unref();
  }

  /** Aborts when the process drains. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  get count(): number {
    return this.#count;
  }

  /** Takes a place for a stream or a waiting request, and returns how to give it back. Throws UNAVAILABLE when there is none. */
  enter(): () => void {
    if (this.#draining.signal.aborted || this.#count >= this.#limits.streamsMax)
      throw new A2AError('UNAVAILABLE', { detail: 'too many open streams' });
    this.#count += 1;
    this.#metrics?.openStreams.add(1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#count -= 1;
      this.#metrics?.openStreams.add(-1);
    };
  }

  add(stream: OpenStream): () => void {
    this.#streams.add(stream);
    return () => this.#streams.delete(stream);
  }

  /** Ends every stream and every wait. Without it the server's close would wait for them for ever. */
  drain(): void {
    clearInterval(this.#heartbeat);
    this.#draining.abort();
    for (const stream of this.#streams) stream.drain();
    setTimeout(() => {
      for (const stream of this.#streams) stream.cut();
    }, DRAIN_MS_MAX).unref();
  }

  #beat(): void {
    for (const stream of this.#streams) stream.keepAlive();
  }
}

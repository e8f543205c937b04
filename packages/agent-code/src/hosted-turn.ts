import type { AgentEvent, AgentLost } from '@hopline/agent';
import { ProtocolFault } from './frames.ts';
import { MODEL_REQUESTS_MAX } from './model-requests.ts';
import { type Thrown, WINDOW_BYTES } from './protocol.ts';
import { readEvent } from './read-event.ts';
import { fromThrown } from './thrown.ts';

/** Taken bytes that are reported together. */
const REPORTED_BYTES = WINDOW_BYTES / 4;

/** Maximum number of runs on servers that one turn may report. Each is kept until the turn ends. */
const RUNS_MAX = 1_024;
/** Spans of one turn that are exported; the first ones. */
export const SPANS_MAX = 1_024;

type Batch = { events: readonly unknown[]; bytes: number };

/** A turn that runs in a host, as the sub-agent sees it: the events that have arrived but were not taken yet. */
export class HostedTurn {
  readonly #queue: Batch[] = [];
  readonly #report: (bytes: number) => void;
  #waitingBytes = 0;
  #unreportedBytes = 0;
  #isAborted = false;
  #isOver = false;
  #runs = 0;
  #asksStep = false;
  #spans = 0;
  #modelRequests = 0;
  #error: Error | undefined;
  #wake = () => {};
  readonly #stopped = Promise.withResolvers<void>();

  /** `report`: sends the host the number of bytes that were taken. */
  constructor(report: (bytes: number) => void) {
    this.#report = report;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Resolves when the code has stopped, or when its host has ended. */
  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }

  /** Receives events. Throws ProtocolFault if the host did not wait for the log. */
  arrived(events: readonly unknown[], bytes: number): void {
    if (this.#isAborted) return;
    if (this.#waitingBytes + this.#unreportedBytes >= WINDOW_BYTES) throw new ProtocolFault('a turn sent more than its window');
    this.#waitingBytes += bytes;
    this.#queue.push({ events, bytes });
    this.#wake();
  }

  /** The code has begun a run on a server. Returns whether the turn still counts. Throws ProtocolFault for too many. */
  runBegan(): boolean {
    this.#runs += 1;
    if (this.#runs > RUNS_MAX) throw new ProtocolFault(`a turn reported more than ${RUNS_MAX} runs`);
    return !this.#isAborted;
  }

  /** The code asks for a step. Returns whether the turn still counts. Throws ProtocolFault if it has not waited for the last answer. */
  stepAsked(): boolean {
    if (this.#asksStep) throw new ProtocolFault('a turn asked for two steps at once');
    this.#asksStep = !this.#isAborted;
    return this.#asksStep;
  }

  stepAnswered(): void {
    this.#asksStep = false;
  }

  /** The code has ended a span. Returns whether it is exported. */
  spanEnded(): boolean {
    this.#spans += 1;
    return this.#spans <= SPANS_MAX;
  }

  /** A request of the code to a model has ended. Returns whether it is counted. */
  modelRequestEnded(): boolean {
    this.#modelRequests += 1;
    return this.#modelRequests <= MODEL_REQUESTS_MAX;
  }

  /** The turn fails, whatever its code does. */
  fail(error: unknown): void {
    this.#error ??= error instanceof Error ? error : new Error('the turn failed', { cause: error });
    this.#wake();
  }

  /** The code has stopped. */
  over(error: Thrown | undefined): void {
    this.#end(error && fromThrown(error));
  }

  /** The host has ended. */
  lost(fault: AgentLost): void {
    if (!this.#isOver) this.#end(fault);
  }

  /** The sub-agent needs no more events. */
  abort(): void {
    this.#isAborted = true;
    this.#queue.length = 0;
    this.#wake();
  }

  /** The events that arrived together; undefined at the end. Rejects with what the code threw, or with AgentLost. */
  async next(): Promise<readonly AgentEvent[] | undefined> {
    while (this.#queue.length === 0) {
      if (this.#isAborted) return undefined;
      if (this.#error !== undefined) throw this.#error;
      if (this.#isOver) return undefined;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    const { events, bytes } = this.#queue.shift() as Batch;
    this.#waitingBytes -= bytes;
    this.#unreportedBytes += bytes;
    if (this.#unreportedBytes >= REPORTED_BYTES && !this.#isOver) {
      this.#report(this.#unreportedBytes);
      this.#unreportedBytes = 0;
    }
    return events.map(readEvent);
  }

  #end(error: Error | undefined): void {
    this.#isOver = true;
    this.#error ??= error;
    this.#wake();
    this.#stopped.resolve();
  }
}

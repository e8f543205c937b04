import { type A2AError, DIALECTS, type Dialect, type Task } from '@hopline/a2a';
import type { ArtifactIndex, EventSink, Gap, VisibleEntry } from '@hopline/a2a-server';
import type { Frame } from '../support/task-promises.ts';
import type { ClientDialect } from './client-dialect.ts';
import type { Incarnation } from './cluster.ts';
import type { VirtualClock } from './virtual-clock.ts';

type ConnectionEnd = 'ended' | 'failed' | 'drained' | 'cut' | 'left' | 'lost';

/** Size of a gap or a snapshot, roughly. */
const FRAME_BYTES = 1_024;

/** One streaming response of an ingress process: the server's sink and the client's end. */
export class Connection implements EventSink {
  readonly #clock: VirtualClock;
  readonly #ingress: Incarnation;
  readonly #onFrame: (frame: Frame) => void;
  readonly #reader: ClientDialect;
  readonly #closing = new AbortController();
  readonly #ended = Promise.withResolvers<ConnectionEnd>();
  #frames: Frame[] = [];
  #isOpen = true;
  #isClosed = false;
  readonly backlog = 0;
  written = 0;

  /** The dialect in which the server sends. */
  #dialect: Dialect = DIALECTS['1.0'];

  constructor(clock: VirtualClock, ingress: Incarnation, reader: ClientDialect, onFrame: (frame: Frame) => void) {
    this.#clock = clock;
    this.#ingress = ingress;
    this.#reader = reader;
    this.#onFrame = onFrame;
    ingress.gone.signal.addEventListener('abort', () => this.#end('lost'), { once: true });
  }

  /** Aborts at the server when the response has ended or its client has left. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  /** Resolves when the client's end is closed. */
  get over(): Promise<ConnectionEnd> {
    return this.#ended.promise;
  }

  /** Closes the connection at the client's end; the server notices later. */
  leave(): void {
    if (!this.#isOpen) return;
    this.#end('left');
    this.#clock.as(this.#ingress.process, () => this.#clock.after(1, () => this.#close()));
  }

  get closed(): boolean {
    return this.#isClosed;
  }

  /** The response becomes a stream of events. */
  sinkOf(dialect: Dialect): this {
    this.#dialect = dialect;
    return this;
  }

  open(): void {}

  addEvent({ generation, cursor, fact }: VisibleEntry, indexOf: ArtifactIndex): void {
    const read = this.#reader.event(this.#dialect, fact.event, indexOf);
    this.#frames.push({ kind: 'event', generation, cursor, json: JSON.stringify(read) });
  }

  addSnapshot(task: Task, cursor: string, generation: number): void {
    this.#frames.push({ kind: 'snapshot', generation, cursor, task: this.#reader.snapshot(this.#dialect, task) });
  }

  addGap({ from, to }: Gap): void {
    this.#frames.push({ kind: 'gap', from, to });
  }

  flush(): void {
    const frames = this.#frames.splice(0);
    for (const frame of frames) {
      this.written += frame.kind === 'event' ? frame.json.length : FRAME_BYTES;
      if (this.#isOpen) this.#onFrame(frame);
    }
  }

  async flushAll(): Promise<boolean> {
    this.flush();
    return !this.#isClosed;
  }

  end(): void {
    this.flush();
    this.#finish('ended');
  }

  fail(_error: A2AError): void {
    this.#finish('failed');
  }

  drain(): void {
    this.#finish('drained');
  }

  cut(): void {
    this.#finish('cut');
  }

  keepAlive(): void {}

  onClose(listener: () => void): void {
    if (this.#isClosed) queueMicrotask(listener);
    else this.#closing.signal.addEventListener('abort', listener, { once: true });
  }

  #finish(how: ConnectionEnd): void {
    this.#end(how);
    this.#close();
  }

  #end(how: ConnectionEnd): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#ended.resolve(how);
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closing.abort();
  }
}

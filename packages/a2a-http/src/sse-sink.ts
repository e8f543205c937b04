import { type A2AError, type Dialect, type DialectName, frameResult, sseComment, sseFrame, type Task } from '@hopline/a2a';
import type { ArtifactIndex, EventEncoder, EventSink, Gap, VisibleEntry } from '@hopline/a2a-server';
import { RESUME_EXTENSION_URI, taskWithGeneration, withGeneration } from '@hopline/agent-card';
import type { FastifyReply } from 'fastify';
import { SseStream } from './sse-stream.ts';

/** What a binding puts around the results of a dialect. */
export type Framing = {
  /** JSON text before and after a result, in each frame of a stream. */
  before: string;
  after: string;
  /** A frame that says what went wrong. */
  failure(error: A2AError, dialect: DialectName): object;
  /** SSE event name of that frame; absent: none. */
  failureEvent?: string;
};

/**
 * What stands after `"result":` in a frame: JSON text, made once per dialect, because only the request id differs between viewers. And once more where events name their generation:
 * a form of its own, so that nobody else pays for it.
 */
const plain = new Map<Dialect, EventEncoder<string>>();
const counting = new Map<Dialect, EventEncoder<string>>();

function encoderOf(dialect: Dialect, isCounting: boolean): EventEncoder<string> {
  const encoders = isCounting ? counting : plain;
  const known = encoders.get(dialect);
  if (known !== undefined) return known;
  const made: EventEncoder<string> = {
    encode: (event, artifactIndex, generation) => {
      const shown = isCounting ? withGeneration(event, generation) : event;
      return frameResult(dialect, dialect.encodeEvent(shown, artifactIndex));
    },
  };
  encoders.set(dialect, made);
  return made;
}

export type SseSinkOptions = {
  framing: Framing;
  /** URIs of those that are active. */
  extensions: readonly string[];
  /** A client that takes nothing of what is left at the end for so long is cut; milliseconds. */
  stallMs: number;
};

/** Takes a response over as an event stream of one dialect in one binding's framing. */
export class SseSink implements EventSink {
  readonly #reply: FastifyReply;
  readonly #stream: SseStream;
  readonly #dialect: Dialect;
  readonly #encoder: EventEncoder<string>;
  readonly #framing: Framing;
  readonly #isCounting: boolean;
  readonly #before: string;
  readonly #after: string;
  /** Whole frames that wait for `flush`. */
  #frames = '';

  constructor(reply: FastifyReply, dialect: Dialect, { framing, extensions, stallMs }: SseSinkOptions) {
    reply.hijack();
    this.#reply = reply;
    this.#stream = new SseStream(reply.raw, stallMs);
    this.#dialect = dialect;
    this.#isCounting = extensions.includes(RESUME_EXTENSION_URI);
    this.#encoder = encoderOf(dialect, this.#isCounting);
    this.#framing = framing;
    this.#before = `data: ${framing.before}`;
    this.#after = `${framing.after}\n\n`;
  }

  get closed(): boolean {
    return this.#stream.closed;
  }

  get backlog(): number {
    return this.#stream.backlog;
  }

  get written(): number {
    return this.#stream.written;
  }

  open(): void {
    this.#stream.open(this.#reply.getHeaders());
  }

  addEvent(entry: VisibleEntry, artifactIndex: ArtifactIndex): void {
    this.#frames += `id: ${entry.cursor}\n${this.#before}${entry.encoded(this.#encoder, artifactIndex)}${this.#after}`;
  }

  /** Only the last frame completes a snapshot of several: a client that is cut before it comes back to where it was. */
  addSnapshot(task: Task, cursor: string, generation: number): void {
    const shown = this.#isCounting ? taskWithGeneration(task, generation) : task;
    const results = this.#dialect.encodeSnapshot(shown);
    for (const [index, result] of results.entries()) {
      const id = index === results.length - 1 ? `id: ${cursor}\n` : '';
      this.#frames += `${id}${this.#before}${frameResult(this.#dialect, result)}${this.#after}`;
    }
  }

  addGap(missing: Gap): void {
    this.#frames += sseFrame({ event: 'gap', data: JSON.stringify({ missing }) });
  }

  flush(): void {
    const frames = this.#taken();
    if (frames !== '') this.#stream.send(frames);
  }

  flushAll(stallMs: number): Promise<boolean> {
    return this.#stream.sendAll(this.#taken(), stallMs);
  }

  end(): void {
    this.#stream.end(this.#taken());
  }

  fail(error: A2AError): void {
    this.#stream.end(this.#failure(error));
  }

  /** Readers of the binding see a retryable error, readers of SSE an event and when to come back. */
  drain(error: A2AError, retryMs: number): void {
    const data = JSON.stringify(this.#framing.failure(error, this.#dialect.name));
    const told = this.#framing.failureEvent === undefined ? '' : this.#failure(error);
    this.#stream.end(sseFrame({ retryMs, event: 'drain', data }) + told);
  }

  cut(): void {
    this.#stream.cut();
  }

  keepAlive(): void {
    this.#stream.send(sseComment('keep-alive'));
  }

  onClose(listener: () => void): void {
    this.#stream.onClose(listener);
  }

  #taken(): string {
    const frames = this.#frames;
    this.#frames = '';
    return frames;
  }

  #failure(error: A2AError): string {
    const { failureEvent: event } = this.#framing;
    const data = JSON.stringify(this.#framing.failure(error, this.#dialect.name));
    return sseFrame({ ...(event !== undefined && { event }), data });
  }
}

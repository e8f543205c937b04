import { type A2AError, type Dialect, type DialectName, frameResult, sseComment, sseFrame, type Task } from '@hopline/a2a';
import type { ArtifactIndex, EventEncoder, EventSink, Gap, VisibleEntry } from '@hopline/a2a-server';
import { RESUME_EXTENSION_URI, taskWithGeneration, withGeneration } from '@hopline/agent-card';
import type { FastifyReply } from 'fastify';
import { SseStream } from './sse-stream.ts';

/** How a binding frames the results of a dialect. */
export type Framing = {
  /** JSON text before and after a result, in each frame of a stream. */
  before: string;
  after: string;
  /** The content of an error frame. */
  failure(error: A2AError, dialect: DialectName): object;
  /** SSE event name of that frame; absent: none. */
  failureEvent?: string;
};

/**
 * The JSON text after `"result":` in a frame, encoded once per dialect: only the request id differs between viewers. Frames
 * with generations have encoders of their own, so other viewers do not pay for them.
 */
const plainEncoders = new Map<Dialect, EventEncoder<string>>();
const countingEncoders = new Map<Dialect, EventEncoder<string>>();

function encoderOf(dialect: Dialect, countsGenerations: boolean): EventEncoder<string> {
  const encoders = countsGenerations ? countingEncoders : plainEncoders;
  const known = encoders.get(dialect);
  if (known !== undefined) return known;
  const encoder: EventEncoder<string> = {
    encode: (event, artifactIndex, generation) => {
      const extended = countsGenerations ? withGeneration(event, generation) : event;
      return frameResult(dialect, dialect.encodeEvent(extended, artifactIndex));
    },
  };
  encoders.set(dialect, encoder);
  return encoder;
}

/** The newest frame of an event and what it was made of: viewers of a task get it one after the other, most with equal request ids. */
let newest: { entry: VisibleEntry; encoder: EventEncoder<string>; before: string; after: string; frame: string } | undefined;

export type SseSinkOptions = {
  framing: Framing;
  /** URIs of the active extensions. */
  extensions: readonly string[];
  /** A client that reads nothing of the remaining bytes for this long after the end is cut. */
  stallMs: number;
};

/** Turns a response into an event stream of one dialect in the framing of one binding. */
export class SseSink implements EventSink {
  /** Only until the stream is open: the reply holds the request with its body. */
  #reply: FastifyReply | undefined;
  readonly #stream: SseStream;
  readonly #dialect: Dialect;
  readonly #encoder: EventEncoder<string>;
  readonly #framing: Framing;
  readonly #countsGenerations: boolean;
  readonly #before: string;
  readonly #after: string;
  /** Whole frames that wait for `flush`. */
  #frames = '';

  constructor(reply: FastifyReply, dialect: Dialect, { framing, extensions, stallMs }: SseSinkOptions) {
    reply.hijack();
    this.#reply = reply;
    this.#stream = new SseStream(reply.raw, stallMs);
    this.#dialect = dialect;
    this.#countsGenerations = extensions.includes(RESUME_EXTENSION_URI);
    this.#encoder = encoderOf(dialect, this.#countsGenerations);
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
    const reply = this.#reply;
    if (reply === undefined) return;
    this.#stream.open(reply.getHeaders());
    // Idle streams are many and long: they hold neither the headers of a browser nor a caller's credentials.
    reply.request.raw.rawHeaders = [];
    reply.request.raw.headers = {};
    this.#reply = undefined;
  }

  addEvent(entry: VisibleEntry, artifactIndex: ArtifactIndex): void {
    const [encoder, before, after] = [this.#encoder, this.#before, this.#after];
    if (newest?.entry !== entry || newest.encoder !== encoder || newest.before !== before || newest.after !== after) {
      const frame = `id: ${entry.cursor}\n${before}${entry.encoded(encoder, artifactIndex)}${after}`;
      newest = { entry, encoder, before, after, frame };
    }
    this.#frames += newest.frame;
  }

  /**
   * Only the last frame of a snapshot has the cursor: a client that disconnects before it resumes from its previous position.
   */
  addSnapshot(task: Task, cursor: string, generation: number): void {
    const extended = this.#countsGenerations ? taskWithGeneration(task, generation) : task;
    const results = this.#dialect.encodeSnapshot(extended);
    for (const [index, result] of results.entries()) {
      const id = index === results.length - 1 ? `id: ${cursor}\n` : '';
      this.#frames += `${id}${this.#before}${frameResult(this.#dialect, result)}${this.#after}`;
    }
  }

  addGap(missing: Gap): void {
    this.#frames += sseFrame({ event: 'gap', data: JSON.stringify({ missing }) });
  }

  flush(): void {
    const frames = this.#takeFrames();
    if (frames !== '') this.#stream.send(frames);
  }

  flushAll(stallMs: number): Promise<boolean> {
    return this.#stream.sendAll(this.#takeFrames(), stallMs);
  }

  end(): void {
    this.#stream.end(this.#takeFrames());
  }

  fail(error: A2AError): void {
    this.#stream.end(this.#failure(error));
  }

  /** Readers of the binding see a retryable error, readers of SSE the drain event with its retry delay. */
  drain(error: A2AError, retryMs: number): void {
    const data = JSON.stringify(this.#framing.failure(error, this.#dialect.name));
    const errorFrame = this.#framing.failureEvent === undefined ? '' : this.#failure(error);
    this.#stream.end(sseFrame({ retryMs, event: 'drain', data }) + errorFrame);
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

  #takeFrames(): string {
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

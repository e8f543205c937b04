import type { ServerResponse } from 'node:http';
import {
  type A2AError,
  type Dialect,
  type DialectName,
  SSE_CONTENT_TYPE,
  sseComment,
  sseFrame,
  type Task,
  takesFastPaths,
} from '@hopline/a2a';
import {
  type ArtifactIndex,
  type EventEncoder,
  type EventSink,
  type Gap,
  type GenerationForm,
  generationForm,
  ignoreErrors,
  onResponseClose,
  type VisibleEntry,
  writePaced,
} from '@hopline/a2a-server';
import type { FastifyReply } from 'fastify';

/** The framing of a binding: what surrounds the results of a dialect. */
export type Framing = {
  /** JSON text before and after a result, in each frame of a stream. */
  before: string;
  after: string;
  /** The content of an error frame. */
  failure(error: A2AError, dialect: DialectName): object;
  /** SSE event name of the error frame. Absent: the frame has no name. */
  failureEvent?: string;
};

/**
 * The JSON text after `"result":` in a frame, encoded once per dialect: only the request id differs between viewers. Each form of frames
 * with generations has encoders of its own, so that other viewers do not pay for it.
 */
const encoders = new Map<GenerationForm | undefined, Map<Dialect, EventEncoder<string>>>();

function encoderOf(dialect: Dialect, form: GenerationForm | undefined): EventEncoder<string> {
  const ofForm = encoders.get(form) ?? new Map<Dialect, EventEncoder<string>>();
  encoders.set(form, ofForm);
  const known = ofForm.get(dialect);
  if (known !== undefined) return known;
  const encoder: EventEncoder<string> = {
    encode: (event, artifactIndex, generation) => {
      const extended = form === undefined ? event : form.event(event, generation);
      return escapeLineSeparators(dialect.frameText(dialect.encodeEvent(extended, artifactIndex)));
    },
  };
  ofForm.set(dialect, encoder);
  return encoder;
}

/** Python's `str.splitlines` ends lines here, too. JSON text may contain them, but neither LF nor CR. */
const SEPARATORS = /[\u0085\u2028\u2029]/g;

/**
 * JSON text, or whole frames of it, in which each of these characters is an escape. The SDK of A2A for Python reads the lines of a stream with
 * httpx, which splits at them, so one in a text would break the whole stream.
 */
function escapeLineSeparators(json: string): string {
  return json.replace(SEPARATORS, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * The newest frame of an event, and the values it was made from: the viewers of a task get it one after the other, most with equal request
 * ids.
 */
let newest: { entry: VisibleEntry; encoder: EventEncoder<string>; before: string; after: string; frame: string } | undefined;

/** Sinks with flushed text that this turn of the event loop still has to write. */
let waiting: SseSink[] = [];

function writeWaiting(): void {
  const sinks = waiting;
  waiting = [];
  let chunk = NO_CHUNK;
  for (const sink of sinks) chunk = sink.write(chunk);
}

/** A text, and the same text as a chunk of HTTP/1.1. */
type Chunk = { text: string; bytes: Buffer };
const NO_CHUNK: Chunk = { text: '', bytes: Buffer.alloc(0) };

function chunkOf(text: string): Chunk {
  return { text, bytes: Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`) };
}

type SseSinkOptions = {
  framing: Framing;
  /** URIs of the active extensions. */
  extensions: readonly string[];
  /** After the end, a client that reads nothing of the remaining bytes for this long is cut. Before the end, the viewer checks this. */
  stallMs: number;
};

/**
 * Turns a response into an event stream of one dialect in the framing of one binding. Everything that one stream flushes in a turn of the
 * event loop is one chunk in one write, and one callback writes the chunks of all streams. With many viewers of a task, separate calls of
 * `response.write` (four parts and a callback for each chunk) would cost a third of their CPU.
 */
export class SseSink implements EventSink {
  /** Kept only until the stream is open, because the reply keeps the request and its body in memory. */
  #reply: FastifyReply | undefined;
  readonly #response: ServerResponse;
  /** Whether chunks are written directly to the socket instead of with `response.write`. */
  readonly #writesChunks = takesFastPaths();
  readonly #stallMs: number;
  readonly #dialect: Dialect;
  readonly #encoder: EventEncoder<string>;
  readonly #framing: Framing;
  readonly #form: GenerationForm | undefined;
  readonly #before: string;
  readonly #after: string;
  /** Whole frames that wait for `flush`. */
  #frames = '';
  /** Text that was flushed in this turn of the event loop. */
  #flushed = '';
  #written = 0;
  /** A large text is being written at the pace of the client, and nothing else may be written in between. */
  #isPacing = false;

  constructor(reply: FastifyReply, dialect: Dialect, { framing, extensions, stallMs }: SseSinkOptions) {
    reply.hijack();
    this.#reply = reply;
    this.#response = reply.raw;
    ignoreErrors(reply.raw);
    this.#stallMs = stallMs;
    this.#dialect = dialect;
    this.#form = generationForm(extensions);
    this.#encoder = encoderOf(dialect, this.#form);
    this.#framing = framing;
    this.#before = escapeLineSeparators(`data: ${framing.before}`);
    this.#after = `${framing.after}\n\n`;
  }

  get closed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  get backlog(): number {
    return this.#response.writableLength + this.#flushed.length;
  }

  /** UTF-16 units sent so far, which is about the number of bytes if the text is Latin. */
  get written(): number {
    return this.#written;
  }

  /** Sends the headers and a comment at once, before any event exists (S0-2). */
  open(): void {
    const reply = this.#reply;
    if (reply === undefined) return;
    const defined = Object.entries(reply.getHeaders()).filter(([, value]) => value !== undefined) as [string, string][];
    this.#response.writeHead(200, {
      ...Object.fromEntries(defined),
      'content-type': `${SSE_CONTENT_TYPE}; charset=utf-8`,
      'cache-control': 'no-cache, no-transform',
      // Otherwise nginx would buffer the whole response.
      'x-accel-buffering': 'no',
    });
    // The head is written separately from the comment, though in one packet: Node keeps the head, and would keep it in dozens of pieces if
    // it were joined with other text.
    const { socket } = this.#response;
    socket?.cork();
    this.#response.flushHeaders();
    process.nextTick(() => socket?.uncork());
    const comment = sseComment('ok');
    if (!this.closed) {
      this.#response.write(comment);
      this.#written += comment.length;
    }
    // Idle streams are numerous and long, so they keep neither the headers of a browser nor a caller's credentials.
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

  /** Only the last frame of a snapshot has the cursor, so that a client that disconnects earlier resumes from its previous position. */
  addSnapshot(task: Task, cursor: string, generation: number): void {
    const extended = this.#form === undefined ? task : this.#form.task(task, generation);
    const results = this.#dialect.encodeSnapshot(extended);
    for (const [index, result] of results.entries()) {
      const id = index === results.length - 1 ? `id: ${cursor}\n` : '';
      this.#frames += `${id}${this.#before}${escapeLineSeparators(this.#dialect.frameText(result))}${this.#after}`;
    }
  }

  /** Adds frames that the caller has encoded. */
  addFrames(frames: string): void {
    this.#frames += escapeLineSeparators(frames);
  }

  addGap(missing: Gap): void {
    this.#frames += sseFrame({ event: 'gap', data: JSON.stringify({ missing }) });
  }

  flush(): void {
    const frames = this.#takeFrames();
    if (frames !== '') this.#send(frames);
  }

  async flushAll(stallMs: number): Promise<boolean> {
    this.write();
    const frames = this.#takeFrames();
    this.#written += frames.length;
    this.#isPacing = true;
    const isWritten = await writePaced(this.#response, Buffer.from(frames), stallMs);
    this.#isPacing = !isWritten;
    return isWritten;
  }

  end(): void {
    this.#end(this.#takeFrames());
  }

  fail(error: A2AError): void {
    this.#end(this.#failure(error));
  }

  /** Clients of the binding get a retryable error; SSE readers get the drain event with its retry delay. */
  drain(error: A2AError, retryMs: number): void {
    const data = JSON.stringify(this.#framing.failure(error, this.#dialect.name));
    const errorFrame = this.#framing.failureEvent === undefined ? '' : this.#failure(error);
    this.#end(sseFrame({ retryMs, event: 'drain', data }) + errorFrame);
  }

  cut(): void {
    this.#response.destroy();
  }

  keepAlive(): void {
    this.#send(sseComment('keep-alive'));
  }

  onClose(listener: () => void): void {
    onResponseClose(this.#response, listener);
  }

  /** Writes the flushed text. `shared`: the chunk of another stream, written if it has the same text. Returns the chunk to share next. */
  write(shared = NO_CHUNK): Chunk {
    const text = this.#flushed;
    this.#flushed = '';
    if (text === '' || this.closed) return shared;
    const { socket, chunkedEncoding, writableCorked } = this.#response;
    // The response itself must write in three cases: HTTP/1.0 has no chunks, a pipelined response has no socket before the previous one has
    // ended, and a corked one still holds text of this turn, such as its head.
    if (socket === null || !chunkedEncoding || writableCorked > 0 || !this.#writesChunks) {
      this.#response.write(text);
      return shared;
    }
    const chunk = text === shared.text ? shared : chunkOf(text);
    socket.write(chunk.bytes);
    return chunk;
  }

  /** Sends whole frames or a comment with the next write. Skipped while a larger text is being written. */
  #send(text: string): void {
    if (this.closed || this.#isPacing) return;
    this.#written += text.length;
    if (this.#flushed === '' && waiting.push(this) === 1) process.nextTick(writeWaiting);
    this.#flushed += text;
  }

  /** Ends the stream with a last text. A clean end is impossible while a larger text is being written, so the connection is cut. */
  #end(text: string): void {
    if (this.closed) return;
    if (this.#isPacing) {
      this.cut();
      return;
    }
    this.write();
    this.#written += text.length;
    this.#response.setTimeout(this.#stallMs);
    this.#response.end(text);
  }

  #takeFrames(): string {
    const frames = this.#frames;
    this.#frames = '';
    return frames;
  }

  #failure(error: A2AError): string {
    const { failureEvent: event } = this.#framing;
    const data = escapeLineSeparators(JSON.stringify(this.#framing.failure(error, this.#dialect.name)));
    return sseFrame({ ...(event !== undefined && { event }), data });
  }
}

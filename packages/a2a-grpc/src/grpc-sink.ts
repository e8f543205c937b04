import { A2AError, type Dialect, type DialectName, type StreamResponse, type Task, takesFastPaths } from '@hopline/a2a';
import {
  type EventEncoder,
  type EventSink,
  type Gap,
  type GenerationForm,
  generationForm,
  type VisibleEntry,
} from '@hopline/a2a-server';
import { artifactFrameEncoder } from './artifact-frame.ts';
import { type CallStream, lengthPrefixed } from './call-stream.ts';
import { extensionHeaders, failure, metadataOf } from './metadata.ts';
import { PROCEDURES, type Procedure } from './services.ts';

/** Trailer: the cursor after the last event sent. As request metadata: the cursor to resume from. */
const LAST_EVENT_ID = 'last-event-id';
/** Header: the cursor of the first event. Each further event has the next generation. */
const FIRST_EVENT_ID = 'first-event-id';
/** Header: generations removed by retention, as `from-to`. */
const MISSING_EVENTS = 'missing-events';

/**
 * Encoders of events in wire format: the same bytes for every viewer. Each form of events with generations has its own encoder, so that
 * other viewers do not pay for it.
 */
type Encoders = (form: GenerationForm | undefined) => EventEncoder<Buffer>;

function encodersOf({ dialect, output, response }: Procedure): Encoders {
  const encodeArtifact = artifactFrameEncoder(output);
  const byLibrary = (event: StreamResponse) => lengthPrefixed(response(dialect.encodeEvent(event)));
  const framed = (event: StreamResponse) => (takesFastPaths() ? encodeArtifact(event) : undefined) ?? byLibrary(event);
  const known = new Map<GenerationForm | undefined, EventEncoder<Buffer>>([[undefined, { encode: framed }]]);
  return form => {
    const encoder = known.get(form) ?? { encode: (event, _index, generation) => framed(form!.event(event, generation)) };
    known.set(form, encoder);
    return encoder;
  };
}

const encoders = new Map<DialectName, Encoders>();
for (const procedure of PROCEDURES) if (procedure.streams) encoders.set(procedure.dialect.name, encodersOf(procedure));

/** Throws for the legacy form, which has no gRPC. */
export function frameEncoder({ name }: Dialect, form?: GenerationForm): EventEncoder<Buffer> {
  const known = encoders.get(name);
  if (known === undefined) throw new Error(`${name} has no gRPC`);
  return known(form);
}

/**
 * Turns a call into a stream of events. Messages must not differ between viewers, so cursors are in metadata. The headers are sent with the
 * first event, because they name its cursor; an error before it is a status without headers, as for a unary call.
 */
export class GrpcSink implements EventSink {
  readonly #stream: CallStream;
  readonly #procedure: Procedure;
  readonly #encoder: EventEncoder<Buffer>;
  readonly #form: GenerationForm | undefined;
  readonly #headers: Record<string, string>;
  /** Complete messages that wait for `flush`, and the cursor of the newest one. */
  #messages: Buffer[] = [];
  #added: string | undefined;
  /** The cursor of the newest message sent. */
  #sent: string | undefined;

  /** `extensions`: URIs of the active extensions. */
  constructor(stream: CallStream, procedure: Procedure, extensions: readonly string[]) {
    this.#stream = stream;
    this.#procedure = procedure;
    this.#form = generationForm(extensions);
    this.#encoder = frameEncoder(procedure.dialect, this.#form);
    this.#headers = extensionHeaders(procedure, extensions);
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

  open(): void {}

  addEvent(entry: VisibleEntry): void {
    this.#add(entry.cursor, () => entry.encoded(this.#encoder, () => 0));
  }

  addSnapshot(task: Task, cursor: string, generation: number): void {
    const { dialect, response } = this.#procedure;
    const results = dialect.encodeSnapshot(this.#form === undefined ? task : this.#form.task(task, generation));
    this.#add(cursor, () => Buffer.concat(results.map(result => lengthPrefixed(response(result)))));
  }

  /** A gap cannot be reported after the headers. So the stream fails, and the client gets the gap in its headers when it reconnects. */
  addGap({ from, to }: Gap): void {
    if (this.#stream.begun)
      this.fail(new A2AError('UNAVAILABLE', { detail: 'events were removed by retention; reconnect with last-event-id' }));
    else this.#headers[MISSING_EVENTS] = `${from}-${to}`;
  }

  flush(): void {
    if (this.#messages.length > 0) this.#stream.send(this.#takeMessages());
  }

  flushAll(stallMs: number): Promise<boolean> {
    return this.#stream.sendAll(this.#takeMessages(), stallMs);
  }

  end(): void {
    this.flush();
    this.#stream.end(metadataOf(this.#trailers));
  }

  fail(error: A2AError): void {
    this.#stream.fail(failure(this.#procedure, error, this.#trailers));
  }

  drain(error: A2AError, retryMs: number): void {
    this.#stream.fail(failure(this.#procedure, error, this.#trailers, retryMs));
  }

  cut(): void {
    this.#stream.cut();
  }

  /** There is nothing to send, because HTTP/2 pings keep the connection and all its streams open. */
  keepAlive(): void {}

  onClose(listener: () => void): void {
    this.#stream.onClose(listener);
  }

  get #trailers(): Record<string, string> {
    return this.#sent === undefined ? {} : { [LAST_EVENT_ID]: this.#sent };
  }

  #add(cursor: string, messages: () => Buffer): void {
    if (this.closed) return;
    try {
      this.#messages.push(messages());
    } catch (thrown) {
      this.flush();
      this.fail(A2AError.from(thrown));
      return;
    }
    this.#headers[FIRST_EVENT_ID] ??= cursor;
    this.#added = cursor;
  }

  #takeMessages(): Buffer {
    if (!this.#stream.begun) this.#stream.begin(metadataOf(this.#headers));
    this.#sent = this.#added;
    const [first, ...more] = this.#messages.splice(0);
    if (first === undefined) return Buffer.alloc(0);
    return more.length === 0 ? first : Buffer.concat([first, ...more]);
  }
}

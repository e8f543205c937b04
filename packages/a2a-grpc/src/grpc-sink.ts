import { A2AError, type Task } from '@hopline/a2a';
import { type EventEncoder, type EventSink, type Gap, RETRY_AFTER_S, type VisibleEntry } from '@hopline/a2a-server';
import { RESUME_EXTENSION_URI, taskWithGeneration } from '@hopline/agent-card';
import { type CallStream, lengthPrefixed } from './call-stream.ts';
import { frameEncoder } from './frame-encoder.ts';
import { extensionHeaders, failure, metadataOf } from './metadata.ts';
import type { Procedure } from './services.ts';

/** Trailers: where a client goes on that has seen everything up to here. In a request it says where to go on. */
const LAST_EVENT_ID = 'last-event-id';
/** Headers: the cursor of the first event. Every further one counts one generation more. */
const FIRST_EVENT_ID = 'first-event-id';
/** Headers: generations that retention has removed, as `from-to`. */
const MISSING_EVENTS = 'missing-events';

/**
 * Takes a call over as a stream of events. No message may differ between viewers, so what is said about cursors stands in metadata. The headers wait for the first event, which they name; what goes
 * wrong before it is a status without headers, as of a call that streams nothing.
 */
export class GrpcSink implements EventSink {
  readonly #stream: CallStream;
  readonly #procedure: Procedure;
  readonly #encoder: EventEncoder<Buffer>;
  readonly #isCounting: boolean;
  readonly #headers: Record<string, string>;
  /** Whole messages that wait for `flush`, and the cursor of the newest. */
  #messages: Buffer[] = [];
  #added: string | undefined;
  /** The cursor of the newest that was sent. */
  #sent: string | undefined;

  /** `extensions`: URIs of those that are active. */
  constructor(stream: CallStream, procedure: Procedure, extensions: readonly string[]) {
    this.#stream = stream;
    this.#procedure = procedure;
    this.#isCounting = extensions.includes(RESUME_EXTENSION_URI);
    this.#encoder = frameEncoder(procedure.dialect, this.#isCounting ? 'counting' : 'plain');
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
    const results = dialect.encodeSnapshot(this.#isCounting ? taskWithGeneration(task, generation) : task);
    this.#add(cursor, () => Buffer.concat(results.map(result => lengthPrefixed(response(result)))));
  }

  /** Once the headers are out there is no place to say it: the client comes back, and then there is. */
  addGap({ from, to }: Gap): void {
    if (this.#stream.begun)
      this.fail(new A2AError('UNAVAILABLE', { detail: 'events are missing here; continue with last-event-id' }));
    else this.#headers[MISSING_EVENTS] = `${from}-${to}`;
  }

  flush(): void {
    if (this.#messages.length > 0) this.#stream.send(this.#taken());
  }

  flushAll(stallMs: number): Promise<boolean> {
    return this.#stream.sendAll(this.#taken(), stallMs);
  }

  end(): void {
    this.flush();
    this.#stream.end(metadataOf(this.#trailers));
  }

  fail(error: A2AError): void {
    this.#stream.fail(failure(this.#procedure, error, RETRY_AFTER_S * 1_000, this.#trailers));
  }

  drain(error: A2AError, retryMs: number): void {
    this.#stream.fail(failure(this.#procedure, error, retryMs, this.#trailers));
  }

  cut(): void {
    this.#stream.cut();
  }

  /** HTTP/2 pings do that, once for all streams of a connection. */
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

  #taken(): Buffer {
    if (!this.#stream.begun) this.#stream.begin(metadataOf(this.#headers));
    this.#sent = this.#added;
    const [first, ...more] = this.#messages.splice(0);
    if (first === undefined) return Buffer.alloc(0);
    return more.length === 0 ? first : Buffer.concat([first, ...more]);
  }
}

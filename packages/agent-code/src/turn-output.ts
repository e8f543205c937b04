import { type AgentEvent, AgentMisuse } from '@hopline/agent';
import { FRAME_BYTES_MAX, isParsable, STRUCTURE_MAX } from './frames.ts';
import { FRAME_EVENTS_MAX, WINDOW_BYTES } from './protocol.ts';

/** Events, and characters of their texts, that are written at once. */
const EVENTS_AT_ONCE_MAX = FRAME_EVENTS_MAX / 2;
const CHARS_AT_ONCE_MAX = 64 * 1024;
/** Room for the members of a frame besides its events. */
const ENVELOPE_BYTES = 256;

/** The events of one turn on their way out of the host. The events of one turn of the event loop are sent in one write. */
export class TurnOutput {
  readonly #write: (events: string) => number;
  #events: unknown[] = [];
  #chars = 0;
  #isScheduled = false;
  #isClosed = false;
  #sentBytes = 0;
  #wake = () => {};

  /** `write` sends a JSON array of events and returns the bytes of the frame. */
  constructor(write: (events: string) => number) {
    this.#write = write;
  }

  /** Whether `add` may be called now; otherwise after `ready`. A frame that `add` would send first is sent here, because it may fill the window. */
  hasRoomFor(event: AgentEvent): boolean {
    if (!isBatched(event)) this.flush();
    return this.isReady;
  }

  get isReady(): boolean {
    return this.#sentBytes < WINDOW_BYTES || this.#isClosed;
  }

  /** Resolves when the sub-agent takes more. */
  async ready(): Promise<void> {
    while (!this.isReady) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
  }

  /** Throws AgentMisuse for an event that does not fit into a frame, and what `JSON.stringify` throws. */
  add(event: AgentEvent): void {
    if (event.type === 'text') {
      // Most tokens have no other member.
      this.#push(isBare(event) ? event.text : event, event.text.length);
    } else if (isBatched(event)) {
      this.#push(event, 0);
    } else {
      this.flush();
      this.#send(`[${JSON.stringify(event)}]`);
    }
  }

  flush(): void {
    if (this.#events.length === 0) return;
    const events = this.#events;
    this.#events = [];
    this.#chars = 0;
    this.#send(JSON.stringify(events));
  }

  /** The sub-agent has taken these bytes. */
  taken(bytes: number): void {
    this.#sentBytes -= bytes;
    if (this.isReady) this.#wake();
  }

  /** Nothing is sent any more. */
  close(): void {
    this.#isClosed = true;
    this.#events = [];
    this.#wake();
  }

  #push(event: unknown, chars: number): void {
    this.#events.push(event);
    this.#chars += chars;
    if (this.#events.length >= EVENTS_AT_ONCE_MAX || this.#chars >= CHARS_AT_ONCE_MAX) this.flush();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => {
        this.#isScheduled = false;
        this.flush();
      });
    }
  }

  #send(events: string): void {
    if (this.#isClosed) return;
    const bytesMax = FRAME_BYTES_MAX - ENVELOPE_BYTES;
    if (Buffer.byteLength(events) > bytesMax)
      throw new AgentMisuse(`run yielded an event of more than ${bytesMax} bytes of JSON: send it in parts, or as a URL`);
    if (!isParsable(Buffer.from(events)))
      throw new AgentMisuse(`run yielded an event with more than ${STRUCTURE_MAX} values: send it as a file (bytes)`);
    this.#sentBytes += this.#write(events);
  }
}

/** Whether an event leaves together with others. */
function isBatched({ type }: AgentEvent): boolean {
  return type === 'text' || type === 'text-end' || type === 'step' || type === 'working' || type === 'usage';
}

function isBare(event: Extract<AgentEvent, { type: 'text' }>): boolean {
  return event.id === undefined && event.stream === undefined && event.source === undefined;
}

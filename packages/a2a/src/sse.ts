import { createParser, type EventSourceParser } from 'eventsource-parser';
import { A2AError } from './errors.ts';

/** Server-sent events, encoded and decoded (WHATWG HTML 9.2). */

export const SSE_CONTENT_TYPE = 'text/event-stream';

export type SseFrame = { id?: string; event?: string; retryMs?: number; data?: string };

const LINE_END = /\r\n|\r|\n/;

/**
 * One frame. Data with line ends becomes several `data:` lines, because a raw line end would end the field. JSON text contains
 * none.
 */
export function sseFrame(frame: SseFrame): string {
  let written = '';
  if (frame.retryMs !== undefined) written += `retry: ${frame.retryMs}\n`;
  if (frame.id !== undefined) written += `id: ${frame.id}\n`;
  if (frame.event !== undefined) written += `event: ${frame.event}\n`;
  if (frame.data !== undefined) for (const line of frame.data.split(LINE_END)) written += `data: ${line}\n`;
  return `${written}\n`;
}

/** A comment: keeps a connection open, and clients ignore it. */
export function sseComment(text: string): string {
  return `: ${text}\n\n`;
}

export type SseEvent = { data: string; id?: string; event?: string };

/** Default limit for the data of one event, in UTF-8 bytes: four times the largest snapshot of Hopline. */
export const SSE_EVENT_BYTES_MAX = 16 * 1024 * 1024;
/** The prefix of a data line, which is not part of the data. */
const DATA_FIELD = 'data: ';
/** Maximum UTF-8 bytes of one UTF-16 unit. */
const UNIT_BYTES_MAX = 3;

/** The events of a byte stream, one by one, as `decodeSseBatches` decodes them. */
export async function* decodeSse(
  chunks: AsyncIterable<Uint8Array>,
  eventBytesMax = SSE_EVENT_BYTES_MAX,
): AsyncGenerator<SseEvent> {
  for await (const events of decodeSseBatches(chunks, eventBytesMax)) yield* events;
}

/**
 * Decodes the chunks of a byte stream. Accepts LF, CR and CRLF, comments, several data lines, and chunks split anywhere, even inside a code
 * point. An event that the end of the stream truncates is discarded.
 */
export class SseDecoder {
  readonly #eventBytesMax: number;
  readonly #text = new TextDecoder();
  readonly #parser: EventSourceParser;
  #events: SseEvent[] = [];
  #overflow = false;

  constructor(eventBytesMax = SSE_EVENT_BYTES_MAX) {
    this.#eventBytesMax = eventBytesMax;
    this.#parser = createParser({
      // Limits the units of an incomplete event, whose bytes are at least as many.
      maxBufferSize: eventBytesMax + DATA_FIELD.length,
      onEvent: ({ data, id, event }) => {
        this.#overflow ||= isLonger(data, eventBytesMax);
        this.#events.push({ data, ...(id !== undefined && { id }), ...(event !== undefined && { event }) });
      },
      onError: error => {
        this.#overflow ||= error.type === 'max-buffer-size-exceeded';
      },
    });
  }

  /** The events that the chunk completes. Throws INVALID_AGENT_RESPONSE when the data of an event exceeds `eventBytesMax` in UTF-8. */
  feed(chunk: Uint8Array): SseEvent[] {
    this.#parser.feed(this.#text.decode(chunk, { stream: true }));
    if (this.#overflow)
      throw new A2AError('INVALID_AGENT_RESPONSE', { detail: `an event of the stream exceeds ${this.#eventBytesMax} bytes` });
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }
}

/**
 * The events of a byte stream as `SseDecoder` decodes them. Events of one chunk are yielded together, because a step of an iterator costs
 * more than a small event.
 */
export async function* decodeSseBatches(
  chunks: AsyncIterable<Uint8Array>,
  eventBytesMax = SSE_EVENT_BYTES_MAX,
): AsyncGenerator<SseEvent[]> {
  const decoder = new SseDecoder(eventBytesMax);
  for await (const chunk of chunks) {
    const events = decoder.feed(chunk);
    if (events.length > 0) yield events;
  }
}

/** Encodes only events that may be too long, because counting bytes costs as much as the rest of a small event. */
function isLonger(text: string, bytesMax: number): boolean {
  return text.length * UNIT_BYTES_MAX > bytesMax && new TextEncoder().encode(text).length > bytesMax;
}

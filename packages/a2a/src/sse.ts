import { createParser } from 'eventsource-parser';
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

/** UTF-16 units of one event that a reader accepts by default: four times the largest snapshot of Hopline. */
export const SSE_EVENT_CHARS_MAX = 16 * 1024 * 1024;

/** The events of a byte stream, one by one, as `decodeSseBatches` decodes them. */
export async function* decodeSse(
  chunks: AsyncIterable<Uint8Array>,
  eventCharsMax = SSE_EVENT_CHARS_MAX,
): AsyncGenerator<SseEvent> {
  for await (const events of decodeSseBatches(chunks, eventCharsMax)) yield* events;
}

/**
 * Decodes a byte stream into events, those of one chunk together: a step of an iterator costs more than a small event. Accepts
 * LF, CR and CRLF, comments, several data lines, and chunks split anywhere, also inside a code point. An event that the end of
 * the stream truncates is discarded. Throws INVALID_AGENT_RESPONSE when an event exceeds `eventCharsMax` UTF-16 units.
 */
export async function* decodeSseBatches(
  chunks: AsyncIterable<Uint8Array>,
  eventCharsMax = SSE_EVENT_CHARS_MAX,
): AsyncGenerator<SseEvent[]> {
  const tooLong = () =>
    new A2AError('INVALID_AGENT_RESPONSE', { detail: `an event of the stream exceeds ${eventCharsMax} characters` });
  const decoder = new TextDecoder();
  let events: SseEvent[] = [];
  let overflow = false;
  const parser = createParser({
    maxBufferSize: eventCharsMax,
    onEvent: ({ data, id, event }) => {
      overflow ||= data.length > eventCharsMax;
      events.push({ data, ...(id !== undefined && { id }), ...(event !== undefined && { event }) });
    },
    onError: error => {
      overflow ||= error.type === 'max-buffer-size-exceeded';
    },
  });
  for await (const chunk of chunks) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (overflow) throw tooLong();
    if (events.length === 0) continue;
    const ready = events;
    events = [];
    yield ready;
  }
}

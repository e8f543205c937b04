import { createParser } from 'eventsource-parser';
import { A2AError } from './errors.ts';

/** Server-sent events, both ways (WHATWG HTML 9.2). */

export const SSE_CONTENT_TYPE = 'text/event-stream';

export type SseFrame = { id?: string; event?: string; retryMs?: number; data?: string };

const LINE_END = /\r\n|\r|\n/;

/** One frame. Data with line ends becomes several `data:` lines: raw ones inside a line are lost on the way (S2-26). JSON text never has any. */
export function sseFrame(frame: SseFrame): string {
  let written = '';
  if (frame.retryMs !== undefined) written += `retry: ${frame.retryMs}\n`;
  if (frame.id !== undefined) written += `id: ${frame.id}\n`;
  if (frame.event !== undefined) written += `event: ${frame.event}\n`;
  if (frame.data !== undefined) for (const line of frame.data.split(LINE_END)) written += `data: ${line}\n`;
  return `${written}\n`;
}

/** A comment: keeps a connection alive, and no client shows it. */
export function sseComment(text: string): string {
  return `: ${text}\n\n`;
}

export type SseEvent = { data: string; id?: string; event?: string };

/** Bytes of one event that a reader accepts by default: four times what our own largest snapshot has. */
export const SSE_EVENT_CHARS_MAX = 16 * 1024 * 1024;

/**
 * Events of a byte stream as they come. Takes LF, CR and CRLF, comments, several data lines, chunks cut anywhere, also inside a code point; an event that the end
 * of the stream cut is no event. Throws INVALID_AGENT_RESPONSE when one event is longer than `eventCharsMax` UTF-16 units.
 */
export async function* decodeSse(
  chunks: AsyncIterable<Uint8Array>,
  eventCharsMax = SSE_EVENT_CHARS_MAX,
): AsyncGenerator<SseEvent> {
  const tooLong = () =>
    new A2AError('INVALID_AGENT_RESPONSE', { detail: `an event of the stream is longer than ${eventCharsMax}` });
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
    const ready = events;
    events = [];
    yield* ready;
  }
}

import { type Cursor, formatCursor, parseCursor } from '@hopline/events';

/** Digits of each number in an offset, so that offsets sort as text. A cursor has numbers of up to 15 digits. */
const DIGITS = 15;
const OFFSET = /^(\d{15})_(\d{15})$/;

/** The start of the stream, and its tail at the time of the request. */
type Sentinel = '-1' | 'now';

/** The offset after an event: the generation of the event, then the log sequence of its record, from which a reader continues. */
export function offsetOf({ generation, seq }: Cursor): string {
  return [generation, seq].map(number => String(number).padStart(DIGITS, '0')).join('_');
}

/** The position that an offset names. Undefined for text that is not an offset. */
export function positionOf(offset: string): Cursor | Sentinel | undefined {
  if (offset === '-1' || offset === 'now') return offset;
  const match = OFFSET.exec(offset);
  return match ? { generation: Number(match[1]), seq: Number(match[2]) } : undefined;
}

/** The position after an event of the task's stream. */
export function positionAfter(cursor: string): Cursor {
  const position = parseCursor(cursor);
  if (position === undefined) throw new Error(`not a cursor: ${cursor}`);
  return position;
}

export const cursorOf: (position: Cursor) => string = formatCursor;

/**
 * A position in a task's stream: every event up to and including `generation` was received. `seq` is the log sequence of the
 * record that held it, a hint where to start reading that is never trusted. PROTOCOL.md section 5.
 */
export type Cursor = { generation: number; seq: number };

const CURSOR = /^(\d{1,15})\.(\d{1,15})$/;

export function formatCursor(cursor: Cursor): string {
  return `${cursor.generation}.${cursor.seq}`;
}

/** Undefined when `text` is not a cursor. */
export function parseCursor(text: string): Cursor | undefined {
  const match = CURSOR.exec(text);
  return match ? { generation: Number(match[1]), seq: Number(match[2]) } : undefined;
}

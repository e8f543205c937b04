export const NANOS_PER_MS = 1_000_000;
/** The zero time of Go, for which the JetStream API has no null. */
const ZERO_TIME = '0001-01-01T00:00:00Z';

/** RFC 3339 as Go writes it: without zeros at the end of the fraction. */
export function goTime(epochMs: number | undefined): string {
  if (epochMs === undefined) return ZERO_TIME;
  const text = new Date(epochMs).toISOString();
  let end = text.length - 1;
  while (text[end - 1] === '0') end -= 1;
  return `${text.slice(0, text[end - 1] === '.' ? end - 1 : end)}Z`;
}

export function nanosOf(epochMs: number): string {
  return `${Math.floor(epochMs)}000000`;
}

export function msOf(nanos: number): number {
  return nanos / NANOS_PER_MS;
}

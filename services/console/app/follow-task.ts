import { decodeSse, fullJitterMs, type StreamResponse } from '@hopline/a2a';
import { BEGINNING, type StreamItem, StreamPosition } from '@hopline/client/stream-position';

/** Values that a follower yields. `connected` drives the indicator of the page. */
export type FollowedItem = StreamItem | { connected: boolean };

export type FollowOptions = {
  taskId: string;
  /** Opens the stream after a cursor. Rejects with an error that has a `status` when the server refused. */
  open: (cursor: string, signal: AbortSignal) => Promise<Pick<Response, 'body'>>;
  sleep: (ms: number, signal: AbortSignal, onOnline: (() => void) | undefined) => Promise<void>;
  signal: AbortSignal;
  random?: () => number;
};

/** Ingress sends a comment at least every 45 s; a connection without one is dead. */
export const SILENCE_MS_MAX = 75_000;
/** Bounds of the waits between two connections without progress. */
const WAIT_MS_MIN = 250;
const WAIT_MS_MAX = 5_000;
/** An ingress that drains asks for half a second to a second. */
const DRAIN_WAIT_MS = 500;

/**
 * The events of a task from its beginning until it ends, over as many connections as needed. Each connection continues after the cursor of
 * the last event, so that no event is missing or repeated. Throws the error of `open` when a retry cannot help.
 */
export async function* followTask({
  taskId,
  open,
  sleep,
  signal,
  random = Math.random,
}: FollowOptions): AsyncGenerator<FollowedItem> {
  const position = new StreamPosition(taskId, BEGINNING, false);
  for (let failed = 1; !position.ended; failed += 1) {
    position.connect();
    let askedMs = 0;
    try {
      const { body } = await open(position.cursor ?? BEGINNING, signal);
      // The task has ended, and no event follows.
      if (body === null) return;
      yield { connected: true };
      for await (const { data, id, event } of decodeSse(chunksOf(body, SILENCE_MS_MAX))) {
        if (event === 'drain') {
          askedMs = DRAIN_WAIT_MS;
          break;
        }
        const items = position.accept(event === 'gap' ? gapOf(data) : { cursor: id, event: eventOf(data) });
        if (items.length > 0) failed = 1;
        yield* items;
        if (position.ended) return;
      }
    } catch (error) {
      if (signal.aborted || isFinal(error)) throw error;
      askedMs = (error as { retryAfterMs?: number }).retryAfterMs ?? 0;
    }
    if (position.ended) return;
    yield { connected: false };
    // With jitter, because all pages lose an ingress at once. When the network returns to the browser, at once unless the server has asked for the delay.
    const waitMs = askedMs + fullJitterMs(failed, WAIT_MS_MIN, WAIT_MS_MAX, random);
    await sleep(waitMs, signal, askedMs > 0 ? undefined : () => {});
  }
}

/** Whether a refusal is permanent, that is, not from a rate limit or a restarting server. */
export function isFinal(error: unknown): boolean {
  const status = (error as { status?: number }).status;
  return status !== undefined && status < 500 && ![408, 425, 429].includes(status);
}

/** The chunks of a body. Throws when it is silent for `silenceMsMax`: its connection may be dead, for example after the machine has slept. */
export async function* chunksOf(body: ReadableStream<Uint8Array>, silenceMsMax: number): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const read = () => readWithin(silenceMsMax, reader);
  try {
    for (let next = await read(); !next.done; next = await read()) yield next.value;
  } finally {
    // Also runs if the consumer stops early, because the connection must not stay open.
    reader.cancel().catch(() => {});
  }
}

async function readWithin(ms: number, reader: ReadableStreamDefaultReader<Uint8Array>) {
  let isSilent = false;
  const timer = setTimeout(() => {
    isSilent = true;
    reader.cancel().catch(() => {});
  }, ms);
  try {
    const next = await reader.read();
    if (isSilent) throw new Error(`no byte has arrived for ${ms / 1_000} s`);
    return next;
  } finally {
    clearTimeout(timer);
  }
}

const EVENTS = ['task', 'message', 'statusUpdate', 'artifactUpdate'];

/** Undefined for an event of a later version, and for an error that ends the stream. */
function eventOf(data: string): StreamResponse | undefined {
  const json = parsed(data);
  return EVENTS.some(name => typeof json?.[name] === 'object') ? (json as unknown as StreamResponse) : undefined;
}

function gapOf(data: string): { gap: { from: number; to: number } | 'unknown' } {
  const missing = parsed(data)?.missing as { from?: unknown; to?: unknown } | undefined;
  const { from, to } = missing ?? {};
  return typeof from === 'number' && typeof to === 'number' ? { gap: { from, to } } : { gap: 'unknown' };
}

function parsed(data: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

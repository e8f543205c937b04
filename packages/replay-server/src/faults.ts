import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { A2AError, isObject } from '@hopline/a2a';
import type { EventSink, ServerRequest } from '@hopline/a2a-server';

/** Name of the header or request metadata in which one request asks for a fault. */
const FAULT_NAME = 'hopline-fault';
const DELAY_MS_MAX = 60_000;
const COUNT_MAX = 1_000_000;
/** Time limit for delivering the frames before a stream is cut. */
const CUT_STALL_MS = 5_000;
const POLL_MS = 5;

/** Faults for testing a client. */
export type Faults = {
  /** Each stream is cut after this many frames. */
  cut?: number;
  /** Each request waits this long, in milliseconds. */
  delay?: number;
  /** Number of first requests that are refused with UNAVAILABLE (HTTP 503). */
  refuse?: number;
};

/** Parses `cut=3,delay=200,refuse=2`. Throws a TypeError of one sentence. */
export function parseFaults(text: string): Faults {
  const faults: Faults = {};
  for (const item of text.split(',')) {
    const [, name = '', value = '1'] = /^\s*(cut|delay|refuse)(?:=(\d{1,9}))?\s*$/.exec(item) ?? [];
    const max = name === 'delay' ? DELAY_MS_MAX : COUNT_MAX;
    const count = Number(value);
    if (name === '' || (name !== 'refuse' && !item.includes('=')) || count < 1 || count > max)
      throw new TypeError(
        'a fault must be cut=FRAMES, delay=MILLISECONDS (at most 60000) or refuse=REQUESTS, separated by commas',
      );
    faults[name as keyof Faults] = count;
  }
  return faults;
}

/** Applies the faults of the server, and those that a request asks for, to each request of every binding. */
export class FaultInjector {
  readonly #faults: Faults;
  #refusals: number;

  constructor(faults: Faults) {
    this.#faults = faults;
    this.#refusals = faults.refuse ?? 0;
  }

  /** Throws UNAVAILABLE, or INVALID_PARAMS for an unknown fault. */
  async apply(request: ServerRequest): Promise<ServerRequest> {
    const faults = requested(request);
    const { cut = this.#faults.cut, delay = this.#faults.delay } = faults;
    if (delay !== undefined) await sleep(delay, undefined, { signal: request.closed }).catch(() => {});
    if (faults.refuse !== undefined || this.#refusals > 0) {
      if (faults.refuse === undefined) this.#refusals -= 1;
      throw new A2AError('UNAVAILABLE', { detail: 'this fault was requested' });
    }
    if (cut === undefined) return request;
    return { ...request, openSink: (...args) => cutAfter(request.openSink(...args), cut) };
  }
}

function requested({ headers, params }: ServerRequest): Faults {
  const header = headers[FAULT_NAME];
  const metadata = isObject(params) && isObject(params.metadata) ? params.metadata[FAULT_NAME] : undefined;
  const text = (Array.isArray(header) ? header[0] : header) ?? metadata;
  if (text === undefined) return {};
  try {
    return parseFaults(String(text));
  } catch (thrown) {
    throw new A2AError('INVALID_PARAMS', { detail: thrown instanceof Error ? thrown.message : String(thrown) });
  }
}

/** Wraps a response: its connection breaks after `frames` frames, which still arrive. */
function cutAfter(sink: EventSink, frames: number): EventSink {
  let left = frames;
  let cutting: Promise<void> | undefined;
  const cut = () => {
    cutting ??= sent(sink).then(() => sink.cut());
    return cutting;
  };
  const counted = (add: () => void) => {
    if (left === 0) return;
    left -= 1;
    add();
  };
  return {
    get closed() {
      return sink.closed;
    },
    get backlog() {
      return sink.backlog;
    },
    get written() {
      return sink.written;
    },
    open: () => sink.open(),
    addEvent: (entry, artifactIndex) => counted(() => sink.addEvent(entry, artifactIndex)),
    addSnapshot: (task, cursor, generation) => counted(() => sink.addSnapshot(task, cursor, generation)),
    addGap: missing => sink.addGap(missing),
    flush: () => (left === 0 ? void cut() : sink.flush()),
    flushAll: async stallMs => {
      if (left > 0) return sink.flushAll(stallMs);
      await cut();
      return false;
    },
    end: () => (left === 0 ? void cut() : sink.end()),
    fail: error => sink.fail(error),
    drain: (error, retryMs) => sink.drain(error, retryMs),
    cut: () => sink.cut(),
    keepAlive: () => sink.keepAlive(),
    onClose: listener => sink.onClose(listener),
  };
}

/** Resolves when the operating system has every byte, because cutting the connection discards bytes that the process still has. */
async function sent(sink: EventSink): Promise<void> {
  await sink.flushAll(CUT_STALL_MS);
  // The first bytes of a response are held until the event loop's turn ends.
  await setImmediate();
  const untilMs = performance.now() + CUT_STALL_MS;
  while (!sink.closed && sink.backlog > 0 && performance.now() < untilMs) await sleep(POLL_MS);
}

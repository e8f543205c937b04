import { backoffMs, LogUnavailable } from '@hopline/log';
import { JetStreamApiError, JetStreamError } from '@nats-io/jetstream';
import { PermissionViolationError } from '@nats-io/nats-core';
import { type Connection, REQUEST_TIMEOUT_MS } from './connection.ts';
import { isStreamNotFound, STREAM_MISSING } from './missing-stream.ts';

/** Time to wait for the answer to the first try, and to each later one, before the request is sent again. */
const FIRST_ANSWER_MS = 2_000;
const LATER_ANSWER_MS = 4_000;
const RETRY_MS_BASE = 50;
const RETRY_MS_MAX = 1_000;

/**
 * `readsFrom`: the stream whose records the answer contains. The request then waits for its turn among the reads (ReadSlots), at most
 * `timeoutMs`, and its tries begin only then: tries that began earlier would be repeated during the wait, and most answers would be for
 * callers that no longer wait.
 */
export type RetryOptions = { timeoutMs?: number; signal?: AbortSignal; readsFrom?: string };

/** `onPart`: called for each message of an answer with several messages, so that the answer is not requested again while it arrives. */
type Request<T> = (onPart: () => void) => Promise<T>;

/**
 * Repeats an idempotent request until an answer arrives. Rejects with LogDenied when the user lacks a permission, with LogUnavailable after
 * the timeout, when the log is closed or when `signal` aborts, and with the server's error if a retry would fail in the same way. A late answer to
 * an earlier try counts, so that a server that needs seconds for each answer can still be read (ADR 216).
 */
export function retry<T>(connection: Connection, what: string, request: Request<T>, options: RetryOptions = {}): Promise<T> {
  const { timeoutMs = REQUEST_TIMEOUT_MS, readsFrom, signal } = options;
  const tries = () => repeat(connection, what, request, timeoutMs, signal);
  return readsFrom === undefined ? tries() : connection.reads.run(readsFrom, tries, timeoutMs);
}

async function repeat<T>(
  connection: Connection,
  what: string,
  request: Request<T>,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  const tries = new Tries(connection, request);
  let reason: string | undefined;
  for (let failures = 1; ; failures += 1) {
    connection.requireOpen();
    if (connection.connected) {
      try {
        return await tries.next(Math.max(0, deadline - performance.now()), signal);
      } catch (error) {
        if (isClosed(error)) throw new LogUnavailable(`${what}: the log is closed`);
        const denied = connection.toDenied(error);
        if (denied !== undefined) throw denied;
        if (!isTransient(error)) throw error;
        // The time limit often cuts a try short. The error of the previous try is then more precise.
        if (error instanceof OutOfTime) reason ??= error.message;
        else reason = isStreamNotFound(error) ? STREAM_MISSING : (error as Error).message;
      }
    }
    const left = deadline - performance.now();
    const ends = signal ? AbortSignal.any([signal, connection.closed]) : connection.closed;
    if (left <= 0 || ends.aborted) throw new LogUnavailable(`${what}: ${reason ?? 'not connected'}`);
    await pause(connection, Math.min(left, backoffMs(failures, RETRY_MS_BASE, RETRY_MS_MAX, 10)), ends);
  }
}

/**
 * The tries of one request. A try without an answer stays open until the time limit of nats.js, REQUEST_TIMEOUT_MS, so at most six are
 * open, and one more for each reconnection in that time.
 */
class Tries<T> {
  readonly #connection: Connection;
  readonly #request: Request<T>;
  /** The first answer to any try, or the first error that a repetition cannot change. */
  readonly #answer = Promise.withResolvers<T>();
  /** Ends the current try. A part of the answer to any try restarts its time. */
  #repeatTimer: NodeJS.Timeout | undefined;
  #isFirst = true;

  constructor(connection: Connection, request: Request<T>) {
    this.#connection = connection;
    this.#request = request;
    this.#answer.promise.catch(() => {});
  }

  /**
   * Sends the request. Rejects when the caller must send it again: this try has failed, the connection is lost, or no answer has come. A
   * server that has not answered a PING has not read this try yet. The next try would only queue behind this one and add work, so it waits
   * for the answer to the PING.
   */
  async next(leftMs: number, signal: AbortSignal | undefined): Promise<T> {
    const over = Promise.withResolvers<never>();
    over.promise.catch(() => {});
    const end = (reason: string) => over.reject(new Unanswered(reason));
    const endAtLimit = () => over.reject(new OutOfTime('timeout'));
    const removeListener = this.#connection.onDisconnect(() => end('disconnected'));
    const onAbort = () => end('aborted');
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    const isRead = () =>
      this.#connection.nc.flush().then(
        () => end('timeout'),
        () => {},
      );
    this.#repeatTimer = setTimeout(isRead, this.#isFirst ? FIRST_ANSWER_MS : LATER_ANSWER_MS);
    const endTimer = setTimeout(endAtLimit, leftMs);
    this.#isFirst = false;
    try {
      return await Promise.race([this.#answer.promise, this.#send(() => this.#repeatTimer?.refresh()), over.promise]);
    } finally {
      removeListener();
      signal?.removeEventListener('abort', onAbort);
      clearTimeout(this.#repeatTimer);
      // A timer that has ended would begin again.
      this.#repeatTimer = undefined;
      clearTimeout(endTimer);
    }
  }

  /** Never resolves, because an answer settles all tries. Rejects with an error that may not recur in the next try. */
  async #send(onPart: () => void): Promise<never> {
    try {
      this.#answer.resolve(await this.#request(onPart));
    } catch (error) {
      if (isTransient(error)) throw error;
      this.#answer.reject(error);
    }
    return new Promise(() => {});
  }
}

class Unanswered extends Error {
  override readonly name = 'Unanswered';
}

/** The time limit of the request ended a try. */
class OutOfTime extends Unanswered {}

/** Sleeps for `ms`; ends early at a reconnect or when the signal aborts. */
export async function pause(connection: Connection, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const removeListener = connection.onReconnect(resolve);
  signal.addEventListener('abort', resolve as () => void, { once: true });
  await promise;
  clearTimeout(timer);
  removeListener();
  signal.removeEventListener('abort', resolve as () => void);
}

const TRANSIENT_NAMES = new Set([
  'TimeoutError',
  'RequestError',
  // The name of NoRespondersError.
  'NoResponders',
  'ConnectionError',
  'Unanswered',
  // "jetstream is not enabled": nats.js reports this if no server answers, for example because there is no leader.
  'JetStreamNotEnabled',
]);

function isClosed(error: unknown): boolean {
  return error instanceof Error && (error.name === 'ClosedConnectionError' || error.name === 'DrainingConnectionError');
}

/** "no suitable peers for placement": reported while the servers of a cluster are starting. */
const NO_SUITABLE_PEERS = 10005;

/** A missing stream counts as transient, because a relay creates it again. */
export function isTransient(error: unknown): boolean {
  if (isStreamNotFound(error)) return true;
  if (error instanceof JetStreamApiError) return error.status >= 500 || error.status === 429 || error.code === NO_SUITABLE_PEERS;
  return error instanceof Error && TRANSIENT_NAMES.has(error.name);
}

/** Whether an error is an answer of NATS, or the lack of one. */
export function isOutage(error: unknown): boolean {
  const isAnswer =
    error instanceof JetStreamApiError || error instanceof JetStreamError || error instanceof PermissionViolationError;
  return isAnswer || error instanceof LogUnavailable || isClosed(error) || isTransient(error);
}

import { backoffMs, LogUnavailable } from '@hopline/log';
import { JetStreamApiError, JetStreamError } from '@nats-io/jetstream';
import { PermissionViolationError } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';
import { isStreamNotFound, STREAM_MISSING } from './missing-stream.ts';

/** Time limit of a JetStream request with its retries: longer than an election (4-9 s) and a restart. */
const REQUEST_TIMEOUT_MS = 20_000;
const RETRY_MS_BASE = 50;
const RETRY_MS_MAX = 1_000;

export type RetryOptions = { timeoutMs?: number; signal?: AbortSignal };

/**
 * Repeats an idempotent request until an answer arrives. Rejects with LogDenied when the user lacks a permission, with LogUnavailable after
 * the timeout, when the log is closed or when `signal` aborts, and with the server's error if a retry would fail in the same way.
 */
export async function retry<T>(
  connection: Connection,
  what: string,
  request: () => Promise<T>,
  options: RetryOptions = {},
): Promise<T> {
  const deadline = performance.now() + (options.timeoutMs ?? REQUEST_TIMEOUT_MS);
  let reason = 'not connected';
  for (let failures = 1; ; failures += 1) {
    connection.requireOpen();
    if (connection.connected) {
      try {
        return await whileConnected(connection, request);
      } catch (error) {
        if (isClosed(error)) throw new LogUnavailable(`${what}: the log is closed`);
        const denied = connection.toDenied(error);
        if (denied !== undefined) throw denied;
        if (!isTransient(error)) throw error;
        reason = isStreamNotFound(error) ? STREAM_MISSING : (error as Error).message;
      }
    }
    const left = deadline - performance.now();
    const ends = options.signal ? AbortSignal.any([options.signal, connection.closed]) : connection.closed;
    if (left <= 0 || ends.aborted) throw new LogUnavailable(`${what}: ${reason}`);
    await pause(connection, Math.min(left, backoffMs(failures, RETRY_MS_BASE, RETRY_MS_MAX, 10)), ends);
  }
}

/** Rejects at a disconnect: requests sent before it are never answered, so there is no point in waiting for their timeout. */
async function whileConnected<T>(connection: Connection, request: () => Promise<T>): Promise<T> {
  const lost = Promise.withResolvers<never>();
  const removeListener = connection.onDisconnect(() => lost.reject(new Disconnected('disconnected')));
  const answer = request();
  answer.catch(() => {});
  return Promise.race([answer, lost.promise]).finally(removeListener);
}

class Disconnected extends Error {
  override readonly name = 'Disconnected';
}

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
  'Disconnected',
  // "jetstream is not enabled": nats.js reports this when no server answers, for example because there is no leader.
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

import { LogMismatch } from '@hopline/log';
import type { Connection } from './connection.ts';
import { isStreamNotFound } from './missing-stream.ts';
import type { LostOptions } from './options.ts';
import { checkPeriodically } from './periodic-check.ts';
import { createLost, type StreamsOptions } from './streams.ts';

const LOST_CHECK_MS = 5_000;
const LOST_CHECKS_MIN = 3;

/**
 * Lets relays create streams and buckets again that are lost while they run (an empty volume, an administrator). Without those every
 * question fails, and nothing else would create them before a relay starts. Only JetStream's own answer that a stream does not exist
 * counts, and only if it comes LOST_CHECKS_MIN times in a row while all other streams answer: servers that are starting, electing or away
 * do not answer in this way. The checks end when the log is closed.
 */
export function restoreLost(
  connection: Connection,
  streams: StreamsOptions,
  { checkMs = LOST_CHECK_MS, checksMin = LOST_CHECKS_MIN }: LostOptions,
  timeoutMs: number,
): void {
  const missing = new Map<string, number>();
  let refusal: string | undefined;
  const check = async () => {
    if (!connection.connected) return missing.clear();
    const names = connection.names.allStreams();
    const answers = await Promise.all(names.map(name => existsNow(connection, name)));
    if (!connection.connected || answers.includes(undefined)) return missing.clear();
    for (const [index, name] of names.entries()) {
      if (answers[index] === true) missing.delete(name);
      else missing.set(name, (missing.get(name) ?? 0) + 1);
    }
    const lost = names.filter(name => (missing.get(name) ?? 0) >= checksMin);
    if (lost.length === 0) return;
    const created = await createLost(connection, streams, lost, timeoutMs);
    missing.clear();
    if (created.length > 0) connection.onEvent({ type: 'streams-lost', streams: created });
    for (const stream of created)
      if (connection.names.inputsStreams.includes(stream)) connection.onEvent({ type: 'inputs-rebuilt', stream });
    refusal = undefined;
  };
  const onError = (error: unknown) => {
    // After a fault that passes, the next check tries again.
    const message = error instanceof Error ? error.message : String(error);
    if (connection.closed.aborted || message === refusal) return;
    refusal = message;
    const advice = error instanceof LogMismatch ? '' : ': it is tried again';
    connection.onEvent({ type: 'creation-refused', message: `${message}${advice}` });
  };
  checkPeriodically(connection, checkMs, 'lost streams', () => check().catch(onError));
  const unlisten = connection.onDisconnect(() => missing.clear());
  connection.closed.addEventListener('abort', unlisten, { once: true });
}

/** Undefined without a certain answer. */
async function existsNow({ jsm }: Connection, name: string): Promise<boolean | undefined> {
  try {
    await jsm.streams.info(name);
    return true;
  } catch (error) {
    return isStreamNotFound(error) ? false : undefined;
  }
}

import { LogMismatch } from '@hopline/log';
import type { Connection } from './connection.ts';
import { isStreamNotFound } from './missing-stream.ts';
import type { LostOptions } from './options.ts';
import { checkPeriodically } from './periodic-check.ts';
import { createLost, type StreamsOptions } from './streams.ts';

/**
 * Streams and buckets that are lost while relays run (an empty volume, an administrator) are created again by the relays: without them every question
 * fails, and nothing else would create them before a relay starts. Only the answer of JetStream that a stream does not exist counts, and only if it
 * gives that answer LOOKS_MIN times in a row while all other streams answer, too: servers that start, elect or are away do not answer in this way.
 */
const LOOK_MS = 5_000;
const LOOKS_MIN = 3;

/** Looks for lost streams until the log is closed. */
export function restoreLost(
  connection: Connection,
  streams: StreamsOptions,
  { lookMs = LOOK_MS, looksMin = LOOKS_MIN }: LostOptions,
  timeoutMs: number,
): void {
  const looks = new Map<string, number>();
  let refusal: string | undefined;
  const look = async () => {
    if (!connection.connected) return looks.clear();
    const names = connection.names.allStreams();
    const answers = await Promise.all(names.map(name => existsNow(connection, name)));
    if (!connection.connected || answers.includes(undefined)) return looks.clear();
    for (const [index, name] of names.entries()) {
      if (answers[index] === true) looks.delete(name);
      else looks.set(name, (looks.get(name) ?? 0) + 1);
    }
    const lost = names.filter(name => (looks.get(name) ?? 0) >= looksMin);
    if (lost.length === 0) return;
    const created = await createLost(connection, streams, lost, timeoutMs);
    looks.clear();
    if (created.length > 0) connection.onEvent({ type: 'streams-lost', streams: created });
    for (const stream of created)
      if (connection.names.inputsStreams.includes(stream)) connection.onEvent({ type: 'inputs-rebuilt', stream });
    refusal = undefined;
  };
  const onError = (error: unknown) => {
    // The next look tries again after a fault that passes.
    const message = error instanceof Error ? error.message : String(error);
    if (connection.closed.aborted || message === refusal) return;
    refusal = message;
    const advice = error instanceof LogMismatch ? '' : ': it is tried again';
    connection.onEvent({ type: 'creation-refused', message: `${message}${advice}` });
  };
  checkPeriodically(connection, lookMs, () => look().catch(onError));
  const unlisten = connection.onDisconnect(() => looks.clear());
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

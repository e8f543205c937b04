import {
  backoffMs,
  type FactLog,
  HistoryLost,
  type Log,
  LogDenied,
  LogUnavailable,
  Requeued,
  type StoredFacts,
  sleepUnlessAborted,
} from '@hopline/log';

/**
 * How long a turn waits for a read of the log, in milliseconds: as long as it waits for its end to be shown. A sub-agent reads through
 * relays, and an outage of all relays must not cost a turn an attempt.
 */
const READ_WAIT_MS_MAX = 5 * 60_000;
const RETRY_MS_BASE = 100;
const RETRY_MS_MAX = 5_000;

/**
 * The log as the turns of one agent see it: reads are repeated while the log is unavailable, for up to `waitMs`. When `signal` aborts, they
 * reject with Requeued.
 */
export function patientLog(log: Log, signal: AbortSignal, waitMs = READ_WAIT_MS_MAX): Log {
  const { facts } = log;
  const patience = { signal, waitMs };
  const patientFacts: FactLog = {
    append: (...of) => facts.append(...of),
    last: (...of) => patiently(patience, () => facts.last(...of)),
    lastOfEach: (...of) => facts.lastOfEach(...of),
    read: (...of) => readPatiently(patience, facts, of),
    follow: (...of) => facts.follow(...of),
    readStoredShard: (...of) => facts.readStoredShard(...of),
    extent: () => facts.extent(),
    isLost: (...of) => facts.isLost(...of),
  };
  // The other members, some of which change, are taken from the log itself.
  return Object.create(log, { facts: { value: patientFacts } });
}

type Patience = { signal: AbortSignal; waitMs: number };

async function patiently<T>({ signal, waitMs }: Patience, read: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + waitMs;
  for (let failures = 1; ; failures += 1) {
    try {
      return await unlessAborted(read(), signal);
    } catch (error) {
      if (!isTemporary(error) || performance.now() >= deadline) throw error;
      await sleepUnlessAborted(backoffMs(failures, RETRY_MS_BASE, RETRY_MS_MAX), signal);
      if (signal.aborted) throw new Requeued('shutdown');
    }
  }
}

/** Continues after the last record that was read. */
async function* readPatiently(
  patience: Patience,
  facts: FactLog,
  [taskId, from, ...more]: Parameters<FactLog['read']>,
): AsyncGenerator<StoredFacts, void> {
  let next = from;
  let records = facts.read(taskId, next, ...more)[Symbol.asyncIterator]();
  const step = async () => {
    try {
      return await records.next();
    } catch (error) {
      records = facts.read(taskId, next, ...more)[Symbol.asyncIterator]();
      throw error;
    }
  };
  try {
    for (let result = await patiently(patience, step); result.done !== true; result = await patiently(patience, step)) {
      next = result.value.seq + 1;
      yield result.value;
    }
  } finally {
    await records.return?.();
  }
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(new Requeued('shutdown'));
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

function isTemporary(error: unknown): boolean {
  return error instanceof LogUnavailable && !(error instanceof LogDenied) && !(error instanceof HistoryLost);
}

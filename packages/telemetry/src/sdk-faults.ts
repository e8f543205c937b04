import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import { closedWord } from './closed-word.ts';
import { LINE } from './lines.ts';
import type { Logger } from './logger.ts';

/** At most one line in this time while a collector is unreachable. */
export const SDK_FAULT_INTERVAL_MS = 60_000;
/** A line waits this long for further losses, because a full queue loses spans one at a time. */
export const SDK_FAULT_DELAY_MS = 1_000;

const VAGUE: ReadonlySet<string> = new Set(['queue_full', 'unknown']);

/** A signal of OpenTelemetry. */
type Signal = 'traces' | 'metrics' | 'logs';

type SdkFaults = {
  /** Records that an export of a signal failed. `spans`: number of lost spans. */
  lost(signal: Signal, reason: string, spans: number): void;
  /** Logs losses that have not been logged yet. Call it at the end of the process. */
  flush(): void;
};

/**
 * Logs lost spans and the SDK's own warnings. Without this a failing export is silent; without the interval it would log every few
 * seconds per process. Only a code and numbers are logged: the SDK's messages can quote the data that it failed to send. `onRejected`: called with the
 * number of spans that a collector rejected of a request that it accepted.
 */
export function reportSdkFaults(log: Logger, onRejected: (spans: number) => void = () => {}): SdkFaults {
  let lastMs = Number.NEGATIVE_INFINITY;
  let faults = 0;
  let spans = 0;
  let cause: string | undefined;
  const failed = new Set<Signal>();
  let timer: NodeJS.Timeout | undefined;
  const write = (message: string) => {
    const signal = failed.size === 0 ? undefined : [...failed].sort().join(', ');
    log.warn({ signal, reason: cause ?? 'unknown', spans_lost: spans, suppressed: faults - 1 }, message);
    lastMs = performance.now();
    clearTimeout(timer);
    timer = undefined;
    faults = 0;
    spans = 0;
    cause = undefined;
    failed.clear();
  };
  /** The SDK's own messages do not name the signal. */
  const report = (reason: string, count: number, signal?: Signal) => {
    spans += count;
    faults += 1;
    if (signal !== undefined) failed.add(signal);
    // Keeps the newest cause, except that a vague one never replaces a known one: a queue is full because an export fails, and the SDK
    // reports the same failure again without details.
    if (cause === undefined || !VAGUE.has(reason)) cause = reason;
    const delayMs = Math.max(SDK_FAULT_DELAY_MS, lastMs + SDK_FAULT_INTERVAL_MS - performance.now());
    timer ??= setTimeout(write, delayMs, LINE.exportFailed).unref();
  };
  const onDiag: DiagLogFunction = (message, ...details) => {
    if (String(message) !== PARTIAL_SUCCESS) return report(diagCode(message), 0);
    const rejected = rejectedOf(details[0]);
    for (const [signal, count] of Object.entries(rejected) as [Signal, number][]) {
      // If no items were rejected, it is a warning of the collector.
      if (count === 0) continue;
      const lostSpans = signal === 'traces' ? count : 0;
      if (lostSpans > 0) onRejected(lostSpans);
      report('rejected_by_collector', lostSpans, signal);
    }
  };
  const ignore = () => {};
  diag.setLogger(
    { error: onDiag, warn: onDiag, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return {
    lost: (signal, reason, count) => report(reason, count, signal),
    flush: () => {
      if (spans > 0) write('last spans not exported');
      clearTimeout(timer);
    },
  };
}

/** The SDK's message about an answer of a collector that rejects a part of a request; the next argument is the JSON of `partialSuccess`. */
const PARTIAL_SUCCESS = 'Received Partial Success response:';

function rejectedOf(json: unknown): Record<Signal, number> {
  let members: Record<string, unknown> = {};
  try {
    members = JSON.parse(String(json)) as Record<string, unknown>;
  } catch {
    // A warning without numbers.
  }
  const { rejectedSpans = 0, rejectedDataPoints = 0, rejectedLogRecords = 0 } = members;
  return { traces: Number(rejectedSpans), metrics: Number(rejectedDataPoints), logs: Number(rejectedLogRecords) };
}

// The SDK reports an export error as JSON text whose `code` is a word such as ECONNREFUSED or an HTTP status.
function diagCode(message: unknown): string {
  const code = /"code":"?([A-Z0-9_]{3,24})"?/.exec(String(message))?.[1] ?? 'unknown';
  return /^[3-5]\d\d$/.test(code) ? `http_${code}` : code;
}

/** Causes that `exportFault` looks through. */
const CAUSES_MAX = 5;

/** The statuses after which the SDK sends again. When it has no time left, its error does not have the status. */
const RETRYABLE = 'http_429_502_503_504';

/** Why an export failed, as a closed word: the code of the system error or the HTTP status, never a message. */
export function exportFault(error: unknown): string {
  let cause = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1) {
    const { code } = cause as { code?: unknown };
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,30}$/.test(code)) return code;
    if (typeof code === 'number' && code >= 300 && code < 600) return `http_${code}`;
    if (/time(d )?out/i.test(cause.message)) return 'timeout';
    if (/retryable status/.test(cause.message)) return RETRYABLE;
    cause = cause.cause;
  }
  return error instanceof Error ? closedWord(error.name) : 'unknown';
}

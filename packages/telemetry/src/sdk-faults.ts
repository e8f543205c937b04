import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import { closedWord } from './closed-word.ts';
import { LINE } from './lines.ts';
import type { Logger } from './logger.ts';

/** At most one line in this time while a collector is unreachable. */
export const SDK_FAULT_INTERVAL_MS = 60_000;
/** A line waits this long for further losses, because a full queue loses spans one at a time. */
export const SDK_FAULT_DELAY_MS = 1_000;

const VAGUE: ReadonlySet<string> = new Set(['queue_full', 'unknown']);

type SdkFaults = {
  /** Records that spans or metrics were lost. `count`: number of lost spans. */
  lost(reason: string, count: number): void;
  /** Logs losses that have not been logged yet. Call it at the end of the process. */
  flush(): void;
};

/**
 * Logs lost spans and the SDK's own warnings. Without this a failing export is silent; without the interval it would log every few
 * seconds per process. Only a code and numbers are logged: the SDK's messages can quote the data that it failed to send.
 */
export function reportSdkFaults(log: Logger): SdkFaults {
  let lastMs = Number.NEGATIVE_INFINITY;
  let faults = 0;
  let spans = 0;
  let cause: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  const write = (message: string) => {
    log.warn({ reason: cause ?? 'unknown', spans_lost: spans, suppressed: faults - 1 }, message);
    lastMs = performance.now();
    clearTimeout(timer);
    timer = undefined;
    faults = 0;
    spans = 0;
    cause = undefined;
  };
  const report = (reason: string, count: number) => {
    spans += count;
    faults += 1;
    // Keeps the newest cause, except that a vague one never replaces a known one: a queue is full because an export fails, and the SDK
    // reports the same failure again without details.
    if (cause === undefined || !VAGUE.has(reason)) cause = reason;
    const delayMs = Math.max(SDK_FAULT_DELAY_MS, lastMs + SDK_FAULT_INTERVAL_MS - performance.now());
    timer ??= setTimeout(write, delayMs, LINE.exportFailed).unref();
  };
  const onDiag: DiagLogFunction = message => report(diagCode(message), 0);
  const ignore = () => {};
  diag.setLogger(
    { error: onDiag, warn: onDiag, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return {
    lost: report,
    flush: () => {
      if (spans > 0) write('last spans not exported');
      clearTimeout(timer);
    },
  };
}

// The SDK reports an export error as JSON text whose `code` is a word such as ECONNREFUSED or an HTTP status.
function diagCode(message: unknown): string {
  const code = /"code":"?([A-Z0-9_]{3,24})"?/.exec(String(message))?.[1] ?? 'unknown';
  return /^[3-5]\d\d$/.test(code) ? `http_${code}` : code;
}

/** Causes that `exportFault` looks through. */
const CAUSES_MAX = 5;

/** Why an export failed, as a closed word: the code of the system error or the HTTP status, never a message. */
export function exportFault(error: unknown): string {
  let cause = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1) {
    const { code } = cause as { code?: unknown };
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,30}$/.test(code)) return code;
    if (typeof code === 'number' && code >= 300 && code < 600) return `http_${code}`;
    if (/time(d )?out/i.test(cause.message)) return 'timeout';
    cause = cause.cause;
  }
  return error instanceof Error ? closedWord(error.name) : 'unknown';
}

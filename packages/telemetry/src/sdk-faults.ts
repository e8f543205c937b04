import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import type { Logger } from './logger.ts';

/** One line per this time, however long a collector is away; milliseconds. */
export const SDK_FAULT_INTERVAL_MS = 60_000;

/**
 * Sends the SDK's own warnings to the log. Without this a failing export is silent; unlimited, it would be a line every 5 s per process.
 * Only the fact and the number of faults is logged: the SDK's texts can quote what it failed to send.
 */
export function reportSdkFaults(log: Logger, nowMs: () => number = Date.now): void {
  let lastMs = Number.NEGATIVE_INFINITY;
  let suppressed = 0;
  const report: DiagLogFunction = message => {
    if (nowMs() - lastMs < SDK_FAULT_INTERVAL_MS) {
      suppressed += 1;
      return;
    }
    log.warn({ reason: faultCode(message), suppressed }, 'telemetry could not be exported');
    lastMs = nowMs();
    suppressed = 0;
  };
  const ignore = () => {};
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

// The SDK reports an export error as JSON text; its `code` is a word such as ECONNREFUSED or an HTTP status.
function faultCode(message: unknown): string {
  return /"code":"?([A-Z0-9_]{3,24})"?/.exec(String(message))?.[1] ?? 'unknown';
}

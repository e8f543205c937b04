import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import type { Logger } from './logger.ts';

/** At most one line in this time while a collector is unreachable; milliseconds. */
export const SDK_FAULT_INTERVAL_MS = 60_000;

/**
 * Logs the SDK's own warnings. Without this a failing export is silent; without the interval it would log every 5 s per process.
 * Only a code and the number of faults are logged: the SDK's messages can quote the data that it failed to send.
 */
export function reportSdkFaults(log: Logger, nowMs: () => number = Date.now): void {
  let lastMs = Number.NEGATIVE_INFINITY;
  let suppressed = 0;
  const report: DiagLogFunction = message => {
    if (nowMs() - lastMs < SDK_FAULT_INTERVAL_MS) {
      suppressed += 1;
      return;
    }
    log.warn({ reason: faultCode(message), suppressed }, 'telemetry export failed');
    lastMs = nowMs();
    suppressed = 0;
  };
  const ignore = () => {};
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

// The SDK reports an export error as JSON text whose `code` is a word such as ECONNREFUSED or an HTTP status.
function faultCode(message: unknown): string {
  return /"code":"?([A-Z0-9_]{3,24})"?/.exec(String(message))?.[1] ?? 'unknown';
}

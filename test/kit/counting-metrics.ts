import type { HopMetrics } from '@hopline/telemetry';
import { NO_PARTIES } from './no-metrics.ts';

export type CountLabels = Record<string, string | undefined>;

/** Has an instrument for every name. `count` gets the name of the counter, what was added, and its labels; nothing else is recorded. */
export function countingMetrics(count: (name: string, added: number, labels: CountLabels) => void): HopMetrics {
  const instrument = (name: string) => ({
    add: (added: number, labels: CountLabels = {}) => count(name, added, labels),
    recordMs() {},
    observe() {},
    of: () => NO_PARTIES,
  });
  return new Proxy({}, { get: (_target, name) => instrument(String(name)) }) as HopMetrics;
}

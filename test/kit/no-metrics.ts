import type { HopMetrics, PartyLabels } from '@hopline/telemetry';

/** The labels that `parties` of a double gives to every owner. */
export const NO_PARTIES: PartyLabels = { tenant: 'none', caller: 'none' };

/** Has an instrument for every name. None of them records anything. */
export const NO_METRICS = new Proxy(
  {},
  { get: () => ({ add() {}, recordMs() {}, observe() {}, of: () => NO_PARTIES }) },
) as HopMetrics;

import type { HopMetrics } from '@hopline/telemetry';

/** Has an instrument for every name. None of them records anything. */
export const NO_METRICS = new Proxy({}, { get: () => ({ add() {}, recordMs() {}, observe() {} }) }) as HopMetrics;

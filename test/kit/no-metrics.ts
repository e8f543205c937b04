import type { HopMetrics } from '@hopline/telemetry';

/** Instruments of every name, which record nothing. */
export const NO_METRICS = new Proxy({}, { get: () => ({ add() {}, recordMs() {}, observe() {} }) }) as HopMetrics;

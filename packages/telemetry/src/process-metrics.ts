import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { Meter } from '@opentelemetry/api';
import { PROCESS_METRICS } from './metric-registry.ts';

/**
 * Milliseconds between two samples of the event-loop delay. Each sample is a timer of the runtime, which runs no JavaScript but wakes an
 * idle process: an interval of 10 ms took 3.2 ms of CPU per second, 50 ms takes 0.7.
 */
const DELAY_RESOLUTION_MS = 50;
const NANOS_PER_S = 1e9;
const MICROS_PER_S = 1e6;

/** CPU, memory and event loop of this process, observed whenever metrics are read. Returns a function that stops the observation. */
export function observeProcess(meter: Meter, service: string, version: string): () => void {
  const labels = { service };
  const gauge = (key: keyof typeof PROCESS_METRICS, read: () => number, more = {}) => {
    const { name, unit, meaning: description } = PROCESS_METRICS[key];
    meter
      .createObservableGauge(name, { unit, description })
      .addCallback(result => result.observe(read(), { ...labels, ...more }));
  };
  const { name, unit, meaning: description } = PROCESS_METRICS.cpuTime;
  meter.createObservableCounter(name, { unit, description }).addCallback(result => {
    const { user, system } = process.cpuUsage();
    result.observe(user / MICROS_PER_S, { ...labels, mode: 'user' });
    result.observe(system / MICROS_PER_S, { ...labels, mode: 'system' });
  });
  const startedAt = performance.timeOrigin / 1_000;
  gauge('startTime', () => startedAt);
  gauge('build', () => 1, { version });
  gauge('memory', () => process.memoryUsage.rss());
  gauge('heap', () => process.memoryUsage().heapUsed);
  let before = performance.eventLoopUtilization();
  gauge('loopUtilization', () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  });
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  delay.enable();
  // A sample is the time between two wake-ups of the timer, so an idle loop shows the timer's resolution.
  const seconds = (nanos: number) => (Number.isFinite(nanos) ? Math.max(0, nanos / NANOS_PER_S - DELAY_RESOLUTION_MS / 1000) : 0);
  gauge('loopDelayP50', () => seconds(delay.percentile(50)));
  gauge('loopDelayP99', () => seconds(delay.percentile(99)));
  gauge('loopDelayMax', () => {
    const longest = delay.count === 0 ? 0 : seconds(delay.max);
    delay.reset();
    return longest;
  });
  return () => delay.disable();
}

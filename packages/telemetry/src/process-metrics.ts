import { performance } from 'node:perf_hooks';
import type { Meter } from '@opentelemetry/api';
import { EventLoop } from './event-loop.ts';
import { PROCESS_METRICS } from './metric-registry.ts';

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
  const loop = new EventLoop();
  gauge('loopUtilization', () => loop.utilization());
  gauge('loopDelayP50', () => loop.delays().p50);
  gauge('loopDelayP99', () => loop.delays().p99);
  gauge('loopDelayMax', () => loop.delays().max);
  return () => loop.stop();
}

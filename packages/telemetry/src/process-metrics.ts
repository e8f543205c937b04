import { performance } from 'node:perf_hooks';
import type { Meter } from '@opentelemetry/api';
import { LABEL, METRIC } from './names.ts';

/** Memory and event loop of this process, observed whenever `/metrics` is read. */
export function observeProcess(meter: Meter, service: string): void {
  const labels = { [LABEL.service]: service };
  const memory = meter.createObservableGauge(METRIC.processMemory, { unit: 'By', description: 'Resident memory' });
  memory.addCallback(result => result.observe(process.memoryUsage.rss(), labels));
  const heap = meter.createObservableGauge(METRIC.heapUsed, { unit: 'By', description: 'Heap in use' });
  heap.addCallback(result => result.observe(process.memoryUsage().heapUsed, labels));
  let before = performance.eventLoopUtilization();
  const loop = meter.createObservableGauge(METRIC.loopUtilization, {
    unit: '1',
    description: 'Busy share of the event loop since the last read',
  });
  loop.addCallback(result => {
    const now = performance.eventLoopUtilization();
    result.observe(performance.eventLoopUtilization(now, before).utilization, labels);
    before = now;
  });
}

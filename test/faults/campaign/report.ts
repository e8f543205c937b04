import type { Machine } from '../../bench/measure/machine.ts';
import type { ClassResult } from './campaign.ts';
import type { ClusterSize } from './campaign-cluster.ts';

export type CampaignReport = {
  date: string;
  seed: number;
  replicas: 1 | 3;
  size: ClusterSize;
  concurrency: number;
  seconds: number;
  machine: Machine;
  classes: readonly ClassResult[];
};

const HEAD = `| fault | faults | tasks | failed tasks and calls | lost, doubled, reordered | text pauses: p50 / p99 / max | slowest stream of a fault: p50 / p99 / max | a fault lasts: p50 |
|---|---|---|---|---|---|---|---|`;

/** The report as Markdown. */
export function markdownOf({ date, seed, replicas, size, concurrency, seconds, machine, classes }: CampaignReport): string {
  const tasks = sum(classes, ({ tasks: count }) => count);
  const violations = sum(classes, ({ violations: list }) => list.length);
  const rows = classes.map(rowOf);
  return `${date}, ${machine.commit}: ${tasks} tasks, ${sum(classes, ({ faults }) => faults)} faults, ${violations} violations, in ${Math.round(seconds / 60)} minutes.
Streams with ${replicas === 1 ? '1 replica on one nats-server' : `3 replicas on ${size.nodes} nats-servers`}, ${size.groups} stream ${size.groups === 1 ? 'group' : 'groups'}, ${size.relays} relays, ${size.ingresses} ingresses; ${concurrency} tasks at one time; seed ${seed}.
${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, ${machine.system}; Node ${machine.node}, nats-server ${machine.natsServer}.
${sum(classes, ({ events }) => events)} events reached viewers over ${sum(classes, ({ reconnects }) => reconnects)} resumed streams; ${sum(classes, ({ audited }) => audited)} tasks were audited.

${HEAD}
${rows.join('\n')}
`;
}

function rowOf({ name, untested, faults, tasks, violations, failures, flow }: ClassResult): string {
  if (untested !== undefined) return `| ${name} | untested: ${untested} | | | | | | |`;
  const failed = Object.values(failures).reduce((total, count) => total + count, 0);
  const times = (latency: typeof flow.streams) =>
    latency === undefined ? '' : [latency.p50, latency.p99, latency.max].map(secondsOf).join(' / ');
  const lasted = flow.lasted === undefined ? '' : secondsOf(flow.lasted.p50);
  return `| ${name} | ${faults} | ${tasks} | ${failed} | ${violations.length} | ${times(flow.streams)} | ${times(flow.slowest)} | ${lasted} |`;
}

const secondsOf = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;

function sum<T>(list: readonly T[], count: (one: T) => number): number {
  return list.reduce((total, one) => total + count(one), 0);
}

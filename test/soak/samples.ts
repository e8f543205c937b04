import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { residentKibOf } from '../bench/measure/process-usage.ts';
import { latencyOf, spreadOf } from '../bench/measure/spread.ts';
import type { SoakCluster } from './soak-cluster.ts';

/** Values at one time, by name: `MiB ingress-1`, `handles relay-2`, `consumers`, `age p99, ms`, … */
export type Sample = { atMinutes: number; values: Record<string, number> };

type Jsz = { consumers: number; account_details?: { stream_detail?: { state: { bytes: number; num_subjects?: number } }[] }[] };

/**
 * Values that must not grow while the load stays the same. `agesMs`: ages of the tokens since the last sample. Processes that restart at this moment
 * are left out. Handles and memory only where the system has /proc.
 */
export async function sampleOf(cluster: SoakCluster, agesMs: number[], atMinutes: number): Promise<Sample> {
  const values: Record<string, number> = {};
  for (const replica of cluster.replicas) {
    if (replica.hasEnded) continue;
    const kib = residentKibOf(replica.pid);
    if (kib !== undefined) values[`MiB ${replica.spec.instance}`] = kib / 1024;
    const handles = handlesOf(replica.pid);
    if (handles !== undefined) values[`handles ${replica.spec.instance}`] = handles;
  }
  const read = async <T>(path: string) => (await (await fetch(`${cluster.natsMonitor}${path}`)).json()) as T;
  const [varz, jsz] = await Promise.all([
    read<{ mem: number; connections: number; subscriptions: number }>('/varz'),
    read<Jsz>('/jsz?streams=true'),
  ]);
  const streams = (jsz.account_details ?? []).flatMap(({ stream_detail = [] }) => stream_detail);
  Object.assign(values, {
    'MiB nats-server': varz.mem / 1024 ** 2,
    connections: varz.connections,
    subscriptions: varz.subscriptions,
    consumers: jsz.consumers,
    'subjects in streams': streams.reduce((sum, { state }) => sum + (state.num_subjects ?? 0), 0),
    'MiB in streams': streams.reduce((sum, { state }) => sum + state.bytes, 0) / 1024 ** 2,
    'MiB on disk': bytesBelow(cluster.nats.dir) / 1024 ** 2,
  });
  if (agesMs.length > 0) {
    const { p50, p99 } = latencyOf(Float64Array.from(agesMs));
    values['age p50, ms'] = p50;
    values['age p99, ms'] = p99;
  }
  return { atMinutes, values };
}

function handlesOf(pid: number): number | undefined {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return undefined;
  }
}

function bytesBelow(folder: string): number {
  let bytes = 0;
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    // nats-server removes files meanwhile.
    const found = statSync(join(folder, path), { throwIfNoEntry: false });
    if (found?.isFile()) bytes += found.size;
  }
  return bytes;
}

/** How a value changed: its median in the second tenth of a run, in the last tenth, and the ratio of the two. */
export type Change = { name: string; early: number; late: number; ratio: number };

/** The first tenth is the time in which caches fill. Values with too few samples are left out. */
export function changesOf(samples: readonly Sample[]): Change[] {
  const names = new Set(samples.flatMap(({ values }) => Object.keys(values)));
  return [...names].flatMap(name => {
    const all = samples.flatMap(({ values }) => values[name] ?? []);
    const tenth = Math.ceil(all.length / 10);
    if (all.length < 3) return [];
    const early = spreadOf(all.slice(tenth, 2 * tenth)).median;
    const late = spreadOf(all.slice(-tenth)).median;
    return [{ name, early, late, ratio: late / early }];
  });
}

import { setTimeout as sleep } from 'node:timers/promises';
import { sseFrame } from '@hopline/a2a';
import { createClient } from '@hopline/client';
import {
  type ListedProcess,
  readCluster,
  runningCluster,
  snapshotOf,
  type TopReading,
  type TopSnapshot,
} from '@hopline/local-cluster';

/** Interval of the figures. */
const INTERVAL_MS = 2_000;
/** Delay of the first figures, because rates need two readings. */
const FIRST_MS = 500;

type ClusterSource = {
  ingressUrl: string;
  /** HOPLINE_CONSOLE_HOME. Absent: only those figures of the cluster that ingress shows. */
  home: string | undefined;
};

/** The figures of `hopline top`, and the shards of each relay. */
export type ClusterFigures = TopSnapshot & { shards: { shard: number; relay: string; lag: number }[] };

/**
 * The figures of the cluster for one caller, as SSE frames. Figures from ingress are limited to what the caller's credentials may see.
 * Throws A2AError
 * before the first frame when ingress refuses the credentials.
 */
export async function clusterFrames(
  { ingressUrl, home }: ClusterSource,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<AsyncGenerator<string>> {
  const client = createClient({ url: ingressUrl, headers, retry: { triesMax: 1, unreachedTriesMax: 1 } });
  const read = () => readCluster(client, processesOf(home), signal);
  const first = await read();
  // Done even while ingress is away, because only ingress knows whether the caller may see the figures.
  if (first.fault !== undefined) throw first.fault;
  return frames(ingressUrl, first, read, signal);
}

async function* frames(
  url: string,
  first: TopReading,
  read: () => Promise<TopReading>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let before = first;
  for (let waitMs = FIRST_MS; ; waitMs = INTERVAL_MS) {
    await sleep(waitMs, undefined, { signal });
    const now = await read();
    if (now.fault?.retryable === false) throw now.fault;
    const figures: ClusterFigures = { ...snapshotOf(url, before, now), shards: shardsOf(now) };
    yield sseFrame({ data: JSON.stringify(figures) });
    before = now;
  }
}

/** A relay reports the lag of each shard that it owns. */
function shardsOf({ processes = [] }: TopReading): ClusterFigures['shards'] {
  return processes
    .filter(({ service }) => service === 'relay')
    .flatMap(({ instance, metrics }) =>
      [...(metrics?.by('hopline_shard_lag', 'shard') ?? [])].map(([shard, lag]) => ({
        shard: Number(shard),
        relay: instance,
        lag,
      })),
    )
    .toSorted((a, b) => a.shard - b.shard);
}

/** Undefined if no cluster runs on this machine. */
function processesOf(home: string | undefined): ListedProcess[] | undefined {
  if (home === undefined) return undefined;
  try {
    return runningCluster({ HOPLINE_HOME: home }).processes;
  } catch {
    return undefined;
  }
}

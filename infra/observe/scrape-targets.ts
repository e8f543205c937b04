import { renameSync, writeFileSync } from 'node:fs';
import type { RunFile } from '@hopline/local-cluster';

type TargetGroup = { targets: string[]; labels: { instance: string; __metrics_path__?: string } };

/** Writes the processes with metrics to a file for Prometheus' file discovery. NATS is not among them, because it has its own exporter. */
export function targetsOf({ processes }: Pick<RunFile, 'processes'>): TargetGroup[] {
  const scraped = processes.filter(({ service, url }) => service !== 'nats' && url.startsWith('http'));
  return scraped.map(({ url, instance }) => ({ targets: [new URL(url).host], labels: { instance } }));
}

/** Replaces the file atomically, because Prometheus may read it at any time. */
export function writeTargets(path: string, groups: readonly TargetGroup[]): void {
  const draft = `${path}.new`;
  writeFileSync(draft, JSON.stringify(groups, null, 2));
  renameSync(draft, path);
}

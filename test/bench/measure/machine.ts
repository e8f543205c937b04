import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { arch, cpus, platform, release, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { findBinary } from '../../support/nats/nats-server.ts';

const ROOT = new URL('../../../', import.meta.url);
/** Packages whose version affects a figure. */
const PACKAGES = [
  '@a2a-js/sdk',
  '@nats-io/jetstream',
  '@nats-io/transport-node',
  '@opentelemetry/sdk-trace',
  '@opentelemetry/sdk-metrics',
  'express',
  'fastify',
];

export type Machine = {
  cpu: string;
  cores: number;
  memoryGib: number;
  system: string;
  node: string;
  natsServer: string;
  packages: Record<string, string>;
  commit: string;
};

/** Machine and versions of a measurement, without which its figures mean nothing. */
export function machine(): Machine {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() ?? 'unknown',
    cores: cores.length,
    memoryGib: Math.round((10 * totalmem()) / 2 ** 30) / 10,
    system: `${platform()} ${release()} ${arch()}`,
    node: process.versions.node,
    natsServer: output(findBinary(), '--version').replace(/^nats-server: v/, ''),
    packages: packageVersions(readFileSync(new URL('pnpm-workspace.yaml', ROOT), 'utf8')),
    commit: commit(),
  };
}

export function machineLines(found: Machine): string[] {
  const packages = Object.entries(found.packages).map(([name, version]) => `${name} ${version}`);
  return [
    `machine   ${found.cpu}, ${found.cores} cores, ${found.memoryGib} GiB, ${found.system}`,
    `versions  node ${found.node}, nats-server ${found.natsServer}, ${packages.join(', ')}`,
    `commit    ${found.commit}`,
  ];
}

/** The workspace pins exact versions in its catalog, so these are the installed ones. */
export function packageVersions(workspace: string): Record<string, string> {
  const versions: Record<string, string> = {};
  for (const [, name, version] of workspace.matchAll(/^ {2}['"]?([^\s'":]+)['"]?: (\d[\w.-]*)$/gm)) {
    if (PACKAGES.includes(name!)) versions[name!] = version!;
  }
  return versions;
}

/** The commit of this checkout, and whether its files differ from it. */
export function commit(): string {
  const hash = output('git', 'rev-parse', '--short=12', 'HEAD');
  return output('git', 'status', '--porcelain') === '' ? hash : `${hash}, with changes`;
}

function output(command: string, ...args: string[]): string {
  try {
    return execFileSync(command, args, {
      cwd: fileURLToPath(ROOT),
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return 'unknown';
  }
}

import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '@hopline/local-cluster';
import { createStreams, startNats } from '../support/nats/nats-server.ts';
import { killAtExit } from './measure/kill-at-exit.ts';
import { children, residentKibOf } from './measure/process-usage.ts';
import { type Spread, spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Target } from './measure/targets.ts';
import type { Question, Size } from './question.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BOOTSTRAP = join(ROOT, 'infra/local/bootstrap.mjs');
const IMAGE_MB_MAX = 90;
const READY_MS_MAX = 2_000;
const POLL_MS = 10;
const START_MS_MAX = 60_000;
const PLANS: Record<Size, { starts: number; idleMs: number }> = {
  full: { starts: 5, idleMs: 10_000 },
  quick: { starts: 3, idleMs: 10_000 },
  tiny: { starts: 1, idleMs: 100 },
};
const KIB_PER_MB = 1e6 / 1024;

const AGENT = { name: 'guide', adapter: 'recording', description: 'A recorded answer', path: 'guide.jsonl', default: true };
/** The heap that the chart gives to Node: `pods.heapPercent` of the memory limit of `pods.resources`. */
const HEAP = '--max-old-space-size=307';
const ROLES: Record<string, Record<string, string>> = {
  relay: {},
  ingress: {},
  supervisor: {},
  notifier: {},
  'sub-agent': { HOPLINE_AGENT: JSON.stringify(AGENT) },
  console: {},
};

type Service = { role: string; readyMs: Spread; child: ChildProcess };

/** Size of the image, and start time and idle memory of each service, from the files of the archive that `npm run image` makes. */
export const image: Question = {
  name: 'image',
  async ask(size) {
    const folder = mkdtempSync(join(tmpdir(), 'hopline-image-bench-'));
    const { starts, idleMs } = PLANS[size];
    const services: Service[] = [];
    const nats = await startNats();
    try {
      const { mb, compressedMb } = await buildImage(folder);
      await createStreams(nats.url);
      for (const role of Object.keys(ROLES)) services.push(await startOften(folder, role, nats.url, starts));
      await sleep(idleMs);
      const memory = (pid: number | undefined) => {
        const kib = pid === undefined ? undefined : residentKibOf(pid);
        return kib === undefined ? 'unknown' : (kib / KIB_PER_MB).toFixed(0);
      };
      const rows = services.map(({ role, readyMs, child }) => [role, ...spreadCells(readyMs), memory(child.pid)]);
      const natsPid = children().find(({ program }) => program.startsWith('nats-server'))?.pid;
      const readiness: Target[] = services.map(({ role, readyMs }) => ({
        name: `${role}: ms from start to ready`,
        wanted: { atMost: READY_MS_MAX },
        found: readyMs,
      }));
      return [
        {
          title: `image: ${mb} MB, ${compressedMb} MB compressed; ms from start to ready, ${starts} starts; MB after ${idleMs / 1000} s without work`,
          table: {
            columns: ['service', ...SPREAD_COLUMNS, 'idle MB'],
            rows: [...rows, ['nats-server', ...SPREAD_COLUMNS.map(() => ''), memory(natsPid)]],
          },
          notes: ['idle MB: resident memory, which counts the pages of Node that all services of one node share'],
          targets: [
            { name: 'image: MB compressed', wanted: { atMost: IMAGE_MB_MAX }, found: Number(compressedMb) },
            ...readiness,
          ],
        },
      ];
    } finally {
      for (const { child } of services) child.kill('SIGKILL');
      await nats.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Unpacks the layers of the archive into `folder`. */
async function buildImage(folder: string): Promise<{ mb: string; compressedMb: string }> {
  const archive = join(folder, 'image.tar');
  const { stdout } = await promisify(execFile)(process.execPath, [BOOTSTRAP, 'image', '--archive', archive], { cwd: ROOT });
  const [, mb, compressedMb] = /(\S+) MB, (\S+) MB compressed/.exec(stdout)!;
  const layers = join(folder, 'layers');
  mkdirSync(layers);
  execFileSync('tar', ['-xf', archive, '-C', layers]);
  for (const file of readdirSync(layers).filter(name => name.endsWith('.tar'))) {
    execFileSync('tar', ['-xf', join(layers, file), '-C', folder]);
  }
  return { mb: mb!, compressedMb: compressedMb! };
}

/** Starts a service several times; the last process keeps running. */
async function startOften(folder: string, role: string, natsUrl: string, starts: number): Promise<Service> {
  const readyMs: number[] = [];
  for (;;) {
    const started = await start(folder, role, natsUrl);
    readyMs.push(started.readyMs);
    if (readyMs.length === starts) return { role, readyMs: spreadOf(readyMs), child: started.child };
    started.child.kill('SIGKILL');
    await once(started.child, 'exit');
  }
}

async function start(folder: string, role: string, natsUrl: string): Promise<{ readyMs: number; child: ChildProcess }> {
  const port = await freePort();
  const startedMs = performance.now();
  const child = spawn(join(folder, 'nodejs/bin/node'), [join(folder, 'app/hopline.mjs'), role], {
    cwd: join(folder, 'app'),
    env: {
      NODE_ENV: 'production',
      NODE_OPTIONS: HEAP,
      HOPLINE_HOST: '127.0.0.1',
      HOPLINE_PORT: `${port}`,
      HOPLINE_AGENTS_DIR: join(folder, 'app/demo'),
      NATS_URL: natsUrl,
      ...ROLES[role],
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  killAtExit(child.pid!);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  while (performance.now() - startedMs < START_MS_MAX && child.exitCode === null) {
    const isReady = await fetch(`http://127.0.0.1:${port}/readyz`).then(
      response => response.ok,
      () => false,
    );
    if (isReady) return { readyMs: performance.now() - startedMs, child };
    await sleep(POLL_MS);
  }
  child.kill('SIGKILL');
  if (child.exitCode === null) await once(child, 'exit');
  throw new Error(`${role} did not become ready:\n${errors}`);
}

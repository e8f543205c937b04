import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '@hopline/local-cluster';
import { until } from '../kit/until.ts';

const PROMETHEUS = process.env.PROMETHEUS ?? 'prometheus';
/** The rules that the chart installs, unchanged. */
const RULES = fileURLToPath(new URL('../../infra/helm/hopline/rules/*.yaml', import.meta.url));
const START_MS_MAX = 120_000;
/** Times that a request is sent to a server that is too busy to answer. */
const TRIES = 4;
const RETRY_MS = 1_000;

/** Undefined: it is on PATH. */
export const prometheusMissing =
  spawnSync(PROMETHEUS, ['--version']).error && 'no prometheus on PATH (Debian: apt install prometheus)';

/** Sends a GET below /api/v1/ and resolves with `data` of the answer. Rejects with the text of a failure. */
export type AskPrometheus = (path: string) => Promise<unknown>;

/** Starts Prometheus with the shipped rules, which scrapes and evaluates every `seconds`. It ends with `stack`, or with this process. */
export async function startPrometheus(
  stack: AsyncDisposableStack,
  { scrape, seconds, features = [] }: { scrape: readonly object[]; seconds: number; features?: readonly string[] },
): Promise<AskPrometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-prometheus-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const config = {
    global: { scrape_interval: `${seconds}s`, evaluation_interval: `${seconds}s` },
    rule_files: [RULES],
    scrape_configs: scrape,
  };
  const file = join(folder, 'prometheus.json');
  writeFileSync(file, JSON.stringify(config));
  const port = await freePort();
  const args = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=warn',
    ...features.map(feature => `--enable-feature=${feature}`),
  ];
  // In a group of its own: a command that was interrupted at its terminal still asks it for its report.
  const child = spawn(PROMETHEUS, args, { stdio: 'ignore', detached: true });
  const exited = once(child, 'exit');
  process.once('exit', () => child.kill('SIGKILL'));
  stack.defer(async () => {
    child.kill();
    await exited;
  });
  const url = `http://127.0.0.1:${port}`;
  const isReady = async () => {
    if (child.exitCode !== null) throw new Error(`Prometheus ended with code ${child.exitCode}`);
    return (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true;
  };
  await until(isReady, 'Prometheus is ready', START_MS_MAX);
  return async path => {
    for (let left = TRIES; ; left -= 1) {
      const response = await fetch(`${url}/api/v1/${path}`).catch(error => {
        if (left === 1) throw error;
      });
      if (response?.status === 200) return ((await response.json()) as { data: unknown }).data;
      if (response !== undefined && response.status < 500) throw new Error(`${path}: ${await response.text()}`);
      if (left === 1) throw new Error(`${path}: ${await response?.text()}`);
      await sleep(RETRY_MS);
    }
  };
}

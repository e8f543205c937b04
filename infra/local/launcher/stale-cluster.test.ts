import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createHome, homePaths } from './home.ts';
import { hasEnded } from './process-identity.ts';
import { writeRunFile } from './run-file.ts';
import { stopStaleCluster } from './stale-cluster.ts';

async function running(t: TestContext, ...args: string[]): Promise<number> {
  const child = spawn(process.execPath, ['-e', `console.log('up'); setInterval(() => {}, 1000)`, '--', ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child.pid as number;
}

test('a nats-server and services left on the home are ended, but not an unrelated process with a reused id', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const home = homePaths(folder);
  createHome(home);
  const nats = await running(t, '-c', home.natsConfig);
  const relay = await running(t, '/checkout/services/relay/src/main.ts');
  const unrelated = await running(t, '/somewhere/else.ts');
  const entry = (service: string, pid: number) => ({ service, instance: `${service}-1`, pid, url: '', restarts: 0 });
  const processes = [entry('nats', nats), entry('relay', relay), entry('ingress', unrelated)];
  writeRunFile(home.runFile, { url: '', nats: '', logs: home.logs, processes });
  assert.deepEqual(await stopStaleCluster(home), ['nats-1', 'relay-1']);
  assert.deepEqual([nats, relay, unrelated].map(hasEnded), [true, true, false]);
  assert.ok(!existsSync(home.runFile));
  assert.deepEqual(await stopStaleCluster(home), []);
});

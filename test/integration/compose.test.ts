import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { passwordVariable, serverUsers } from '@hopline/log-jetstream';

const run = promisify(execFile);
const FOLDER = fileURLToPath(new URL('../../infra/compose/', import.meta.url));
const PROJECT = `hopline-test-${process.pid}`;
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
const IMAGE = `hopline:${version}`;
const QUESTION = 'explain hopline';
const PASSWORDS = Object.fromEntries(serverUsers(['guide']).map(user => [passwordVariable(user), `of-${user}`]));
/** The recorded answer takes about six seconds. */
const MID_STREAM_MS = 2_000;
const READY_MS_MAX = 120_000;

const has = (...args: string[]) => spawnSync('docker', args, { stdio: 'ignore' }).status === 0;
const skip = !has('compose', 'version')
  ? 'no container engine with `docker compose`'
  : !has('image', 'inspect', IMAGE) && 'the images of `npm run image` are not loaded into the container engine';

type Nodes = { name: string; options: readonly string[] };
const NODES: Nodes[] = [
  { name: 'one NATS node', options: [] },
  { name: 'three NATS nodes', options: ['--env-file', `${FOLDER}three-nats-nodes.env`, '--profile', 'three'] },
];

for (const { name, options } of NODES) {
  test(`compose with ${name}: no text is lost when containers are killed or the network is cut`, {
    skip,
    timeout: 400_000,
  }, async t => {
    // Ports of the machine may be arbitrary, because the clients are in the cluster's network.
    const env = { ...process.env, ...PASSWORDS, HOPLINE_HTTP_PORT: '0', HOPLINE_GRPC_PORT: '0' };
    const compose = async (...args: string[]) =>
      (
        await run('docker', ['compose', '--project-name', PROJECT, '--file', `${FOLDER}compose.yaml`, ...options, ...args], {
          env,
        })
      ).stdout;
    const docker = async (...args: string[]) => (await run('docker', args, { maxBuffer: 1 << 26 })).stdout;
    const ask = async () =>
      docker('run', '--rm', '--network', `${PROJECT}_default`, IMAGE, 'ask', '--url', 'http://ingress:8000/', QUESTION);
    t.after(() => compose('down', '--volumes', '--timeout', '5'));
    await compose('up', '--detach');
    const answer = await firstAnswer(ask);
    assert.match(answer, /relay/);
    const containers = async (service: string) => (await compose('ps', '--quiet', service)).trim().split('\n');

    for (const service of ['relay', 'ingress', 'supervisor', 'guide']) {
      const asked = ask();
      await sleep(MID_STREAM_MS);
      for (const container of await containers(service)) {
        await docker('kill', container);
        await docker('start', container);
      }
      assert.equal(await asked, answer, `${service} was killed`);
    }
    const asked = ask();
    await sleep(MID_STREAM_MS);
    const [relay] = await containers('relay');
    await docker('network', 'disconnect', `${PROJECT}_default`, relay!);
    assert.equal(await asked, answer, 'the network of a relay was cut');
    await docker('network', 'connect', `${PROJECT}_default`, relay!);
    assert.equal(await ask(), answer);
  });
}

async function firstAnswer(ask: () => Promise<string>): Promise<string> {
  const until = performance.now() + READY_MS_MAX;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > until) throw error;
      await sleep(1_000);
    }
  }
}

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../kit/until.ts';
import { missingPrograms } from './cluster.ts';
import { IPV4_POLICIES, Release } from './release.ts';

/** Looks for the login of NATS wherever a container can look, ends its own processes, or takes its time. */
const MODULE = `
import { connect } from 'node:net';
import { readdirSync, readFileSync } from 'node:fs';

const tried = use => { try { return use(); } catch (error) { return 'refused: ' + error.code; } };

/** What NATS answers to a login with the given password, as one line. */
const login = (user, pass) => new Promise(resolve => {
  const socket = connect(4222, 'hopline-nats');
  let text = '';
  socket.setTimeout(5000, () => socket.destroy());
  socket.on('error', error => resolve(error.code)).on('close', () => resolve(text)).on('data', chunk => {
    text += chunk;
    if (/PONG|-ERR/.test(text)) socket.destroy();
  });
  socket.write('CONNECT ' + JSON.stringify({ verbose: false, user, pass, lang: 'x', version: '1' }) + '\\r\\nPING\\r\\n');
});

async function loot() {
  const processes = readdirSync('/proc').filter(name => /^[0-9]+$/.test(name));
  const environments = processes.map(pid => tried(() => readFileSync('/proc/' + pid + '/environ', 'latin1'))).join();
  const answer = await login('agent', 'guess');
  return {
    variables: Object.keys(process.env).sort(),
    key: process.env.HOSTILE_KEY,
    programs: processes.map(pid => tried(() => readFileSync('/proc/' + pid + '/cmdline', 'latin1'))),
    seesLogin: /NATS_/.test(environments),
    secrets: tried(() => readdirSync('/var/run/hopline')),
    token: tried(() => readdirSync('/var/run/secrets')),
    user: process.getuid(),
    answer: /-ERR '([^']+)'/.exec(answer)?.[1] ?? answer.slice(0, 40),
  };
}

export default {
  name: 'hostile', description: 'Looks for a login', skills: ['hostile'],
  async *run(turn) {
    yield 'attempt ' + turn.attempt + ' ';
    if (turn.text === 'loot') yield JSON.stringify(await loot());
    if (turn.text === 'slow') for (let second = 1; second <= 8; second += 1) {
      await new Promise(resolve => setTimeout(resolve, 1000));
      yield second + ' ';
    }
    // The program of the container ends when its host has ended; Kubernetes then starts the container again.
    if (turn.text === 'end' && turn.attempt === 1) { process.kill(1, 'SIGTERM'); process.exit(1); }
    if (turn.text === 'die' && turn.attempt === 1) process.exit(1);
    yield 'done';
  },
};
`;

const TIMEOUT_MS = 600_000;
const missing = missingPrograms();
const options = { skip: missing ?? false, timeout: TIMEOUT_MS };

const release = new Release('code');
let url: string;

const agent = {
  name: 'hostile',
  folder: '/agent',
  replicas: 2,
  entry: { adapter: 'module', path: './hostile.mjs', env: ['HOSTILE_KEY'], default: true },
  env: [
    { name: 'HOSTILE_KEY', value: 'its own' },
    { name: 'OTHER_KEY', value: 'of the sub-agent' },
  ],
  volumes: [{ name: 'module', configMap: { name: 'hostile' } }],
  volumeMounts: [{ name: 'module', mountPath: '/agent' }],
};

before(
  async () => {
    if (missing) return;
    await release.createNamespace();
    await release.apply({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'hostile' },
      data: { 'hostile.mjs': MODULE },
    });
    await release.upgrade({ nats: { replicas: 1 }, networkPolicy: IPV4_POLICIES, agents: [agent] });
    url = await release.forward();
  },
  { timeout: TIMEOUT_MS },
);

after(async () => {
  if (!missing) await release.close();
});

const ask = (text: string) => release.cli('ask', '--url', url, '--agent', 'hostile', text);

/** Restarts of a container in those pods of the agent that stay, with the names of the pods. */
async function restarts(container: 'code' | 'sub-agent'): Promise<Record<string, number>> {
  const selector = 'app.kubernetes.io/component=agent-hostile';
  const { items } = JSON.parse(await release.kubectl('get', 'pods', '--selector', selector, '--output', 'json'));
  type Status = { name: string; restartCount: number };
  type Pod = {
    metadata: { name: string; deletionTimestamp?: string };
    status: { containerStatuses: Status[]; initContainerStatuses: Status[] };
  };
  const staying = (items as Pod[]).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return Object.fromEntries(
    staying.map(({ metadata, status }) => {
      const all = [...status.containerStatuses, ...status.initContainerStatuses];
      return [metadata.name, all.find(({ name }) => name === container)!.restartCount];
    }),
  );
}

test('code finds no login of NATS in its container, and NATS refuses it', options, async () => {
  const loot = JSON.parse(/\{.*\}/.exec(await ask('loot'))![0]);
  assert.equal(loot.key, 'its own');
  const ofImage = loot.variables.filter((name: string) => !/^KUBERNETES_/.test(name));
  assert.deepEqual(ofImage, ['HOME', 'HOPLINE_HOST', 'HOSTILE_KEY', 'HOSTNAME', 'NODE_ENV', 'NODE_OPTIONS', 'PATH']);
  assert.ok(
    loot.programs.every((program: string) => /\bcode\b|host/.test(program)),
    loot.programs.join('\n'),
  );
  assert.equal(loot.seesLogin, false, 'in the environment of any process that it sees');
  assert.deepEqual([loot.secrets, loot.token, loot.user], [['code'], 'refused: ENOENT', 65_533]);
  assert.equal(loot.answer, 'Authorization Violation');
});

test('a turn in a deleted pod still ends, because its code outlives the drain of the sub-agent', options, async () => {
  const asked = ask('slow');
  // The turn runs in one of the two pods: both are replaced while it runs.
  await sleep(2_000);
  const pods = await release.pods('agent-hostile');
  await release.kubectl('delete', ...pods, '--wait=false');
  assert.match(await asked, /attempt 1 1 2 3 4 5 6 7 8 done/);
  await release.kubectl('rollout', 'status', 'deployment/hopline-agent-hostile', '--timeout=120s');
});

test('if the code’s process ends, it is replaced in its container', options, async () => {
  const before = await restarts('code');
  assert.match(await ask('die'), /attempt 2 done/);
  assert.deepEqual(await restarts('code'), before);
});

test('if the code’s container ends, it is started again, and the sub-agent keeps running', options, async () => {
  const before = [await restarts('code'), await restarts('sub-agent')];
  assert.match(await ask('end'), /attempt 2 done/);
  const sum = (all: Record<string, number>) => Object.values(all).reduce((total, one) => total + one, 0);
  // The other pod may have answered before Kubernetes has counted the restart.
  await until(async () => sum(await restarts('code')) !== sum(before[0]!), 'the restart is counted', TIMEOUT_MS / 2);
  assert.deepEqual(await restarts('sub-agent'), before[1]);
  assert.match(await ask('die'), /attempt 2 done/);
});

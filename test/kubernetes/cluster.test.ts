import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { missingPrograms } from './cluster.ts';
import { checkAnswers, Load } from './load.ts';
import { Release } from './release.ts';

const QUESTION = 'explain hopline';
/** The recorded answer takes about ten seconds; a fault in its middle meets a running turn. */
const MID_STREAM_MS = 3_000;
const TIMEOUT_MS = 600_000;

const missing = missingPrograms();
const options = { skip: missing ?? false, timeout: TIMEOUT_MS };

const release = new Release();
let url: string;
let answer: string;

before(
  async () => {
    if (missing) return;
    const startedMs = performance.now();
    await release.install();
    url = await release.forward();
    answer = await release.ask(url, QUESTION);
    process.stdout.write(
      `# ${((performance.now() - startedMs) / 1000).toFixed(1)} s from helm install to the end of the first answer\n`,
    );
  },
  { timeout: TIMEOUT_MS },
);

after(async () => {
  if (!missing) await release.close();
});

test('the chart with no values runs in a restricted namespace and answers through its Service', options, () => {
  assert.match(answer, /relay/);
  assert.ok(answer.length > 1_000);
});

test('helm test asks a question from inside', options, async () => {
  assert.match(await release.helm('test', 'hopline', '--timeout', '120s'), /Succeeded/);
});

for (const component of ['relay', 'ingress', 'supervisor', 'agent-guide']) {
  test(`${component}: a pod killed in mid-stream costs no text`, options, async () => {
    const asked = release.ask(url, QUESTION);
    await sleep(MID_STREAM_MS);
    const pods = await release.pods(component);
    await release.kubectl('delete', ...pods, '--grace-period=0', '--force');
    assert.equal(await asked, answer);
    await release.kubectl('rollout', 'status', `deployment/hopline-${component}`, '--timeout=120s');
  });
}

test('a NATS node that restarts in mid-stream costs no text', options, async () => {
  const asked = release.ask(url, QUESTION);
  await sleep(MID_STREAM_MS);
  // Never by force: the next pod would open the volume while the server of this one still writes to it.
  await release.kubectl('delete', 'pod/hopline-nats-0');
  assert.equal(await asked, answer);
  await release.kubectl('rollout', 'status', 'statefulset/hopline-nats', '--timeout=180s');
});

test('a rolling update of everything under load, NATS included, fails no request and costs no text', options, async () => {
  const load = await Load.start(release, { name: 'rolling', image: await release.image(), workers: 4 });
  await load.complete(4);
  const quiet = (await load.answers()).length;
  await release.kubectl('rollout', 'restart', 'deployment');
  await release.rolledOut();
  await release.kubectl('rollout', 'restart', 'statefulset');
  await release.rolledOut();
  await load.complete(8);
  const answers = await load.stop();
  checkAnswers('before the rolling update', answers.slice(0, quiet));
  checkAnswers('rolling update', answers.slice(quiet));
});

test('relays scale from one to five and back in mid-stream without cost', options, async () => {
  await release.kubectl('scale', 'deployment/hopline-relay', '--replicas=1');
  await release.rolledOut();
  const load = await Load.start(release, { name: 'scaling', image: await release.image(), workers: 4 });
  await load.complete(4);
  for (const replicas of [5, 1]) {
    await release.kubectl('scale', 'deployment/hopline-relay', `--replicas=${replicas}`);
    await release.rolledOut();
    await load.complete(8);
  }
  checkAnswers('relays 1, 5, 1', await load.stop());
});

test('an added agent restarts no other pod, and answers', options, async () => {
  const before = await release.kubectl('get', 'pods', '--output', 'name', '--selector', 'app.kubernetes.io/component!=test');
  const values = JSON.parse(await release.helm('get', 'values', 'hopline', '--all', '--output', 'json'));
  const entry = { ...values.agents[0].entry, description: 'A second guide', pace: 'burst' };
  await release.upgrade({
    ...values,
    relay: { ...values.relay, replicas: 1 },
    agents: [...values.agents, { ...values.agents[0], name: 'second', entry }],
  });
  const now = await release.kubectl('get', 'pods', '--output', 'name', '--selector', 'app.kubernetes.io/component!=test');
  const added = now.split('\n').filter(pod => !before.includes(pod));
  assert.equal(added.length, 1, added.join());
  assert.match(added[0]!, /agent-second/);
});

test('uninstall leaves the volumes of NATS, the key of the secrets in them, and nothing else', options, async () => {
  await release.kubectl('delete', 'pod', '--selector', 'app.kubernetes.io/component=test', '--ignore-not-found');
  await release.uninstall();
  const left = await release.kubectl('get', 'all,configmap,secret,pvc,pdb,networkpolicy', '--output', 'name');
  const names = left.split('\n').filter(name => name !== '' && !/kube-root-ca.crt/.test(name) && !name.startsWith('pod/'));
  assert.ok(
    names.every(name => /^persistentvolumeclaim\/data-hopline-nats-\d$|^secret\/hopline-secrets$/.test(name)),
    names.join(),
  );
});

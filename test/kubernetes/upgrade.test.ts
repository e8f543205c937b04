import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { missingPrograms } from './cluster.ts';
import { checkAnswers, Load } from './load.ts';
import { Release } from './release.ts';

const QUESTION = 'explain hopline';
const TIMEOUT_MS = 600_000;
const IMAGE_BEFORE = 'hopline:before';

const folder = process.env.HOPLINE_BEFORE;
const chart = join(folder ?? '', 'chart');
const missing =
  missingPrograms() ??
  (folder === undefined || !existsSync(chart)
    ? 'HOPLINE_BEFORE is not set: `node test/kubernetes/version-before.ts COMMIT FOLDER` makes the previous version'
    : undefined);
const options = { skip: missing ?? false, timeout: TIMEOUT_MS };

const release = new Release('upgrade');
const valuesBefore = { image: { repository: 'hopline', tag: 'before' } };
/** As docs/guides/upgrading.md requires while agents of the previous version run. */
const valuesNow = { nats: { earlierAgents: true } };
let url: string;
let answer: string;
let taskBefore: string;

async function newestTask(): Promise<string> {
  const lines = await release.cli('list', '--url', url, '--json', '--limit', '1');
  const { id } = JSON.parse(lines.trim().split('\n')[0]!);
  return id;
}

before(
  async () => {
    if (missing) return;
    await release.install(valuesBefore, chart);
    url = await release.forward();
    answer = await release.ask(url, QUESTION);
    taskBefore = await newestTask();
  },
  { timeout: TIMEOUT_MS },
);

after(async () => {
  if (!missing) await release.close();
});

test('an upgrade from the previous version, under load, fails no request and costs no text', options, async () => {
  const load = await Load.start(release, { name: 'upgrade', image: IMAGE_BEFORE, workers: 3 });
  await load.complete(3);
  await release.upgrade(valuesNow);
  await release.rolledOut();
  await load.complete(6);
  checkAnswers('upgrade', await load.stop());
  assert.notEqual(await release.image(), IMAGE_BEFORE);
});

test('tasks of the previous version are readable', options, async () => {
  assert.equal(await release.cli('get', '--url', url, taskBefore), answer);
  assert.equal(await release.cli('follow', '--url', url, taskBefore), answer);
});

const serviceBefore = { image: { repository: 'hopline', tag: 'before' } };
const hasProbePort =
  missing === undefined && readFileSync(join(chart, 'templates/_service.tpl'), 'utf8').includes('HOPLINE_PROBE_PORT');
const MIXED = {
  'relays, supervisors and notifiers of the previous version': {
    services: { relay: serviceBefore, supervisor: serviceBefore, notifier: serviceBefore },
    skip: missing,
  },
  'ingresses of the previous version': {
    services: { ingress: serviceBefore },
    skip:
      missing ?? (hasProbePort ? undefined : 'the ingress before answers no probes on port 8002, where this chart asks for them'),
  },
};
for (const [name, { services, skip }] of Object.entries(MIXED)) {
  test(`two versions side by side: ${name}`, { ...options, skip: skip ?? false }, async () => {
    const load = await Load.start(release, { name: 'mixed', image: IMAGE_BEFORE, workers: 3 });
    await release.upgrade({ ...valuesNow, ...services });
    await release.rolledOut();
    await load.complete(6);
    await release.upgrade(valuesNow);
    await release.rolledOut();
    await load.complete(3);
    checkAnswers(name, await load.stop());
  });
}

test('a rollback under load fails no request, and the previous version reads the tasks of the newer one', options, async () => {
  await release.ask(url, QUESTION);
  const task = await newestTask();
  const load = await Load.start(release, { name: 'rollback', image: IMAGE_BEFORE, workers: 3 });
  await load.complete(3);
  await release.helm('rollback', 'hopline', '1', '--wait', '--timeout', '240s');
  await release.rolledOut();
  await load.complete(6);
  checkAnswers('rollback', await load.stop());
  assert.equal(await release.image(), IMAGE_BEFORE);
  for (const one of [taskBefore, task]) assert.equal(await release.cli('get', '--url', url, one), answer);
});

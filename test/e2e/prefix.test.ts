import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from '@hopline/client';
import { collect, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster, SHARDS } from '../support/cluster/cluster.ts';
import { startNats } from '../support/nats/nats-server.ts';

const TEXT = 'the same question';
const TASKS = 5;

test('two clusters share one account by a prefix: the same agents, the same texts, and nothing crosses', {
  timeout: 120_000,
}, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const folder = mkdtempSync(join(tmpdir(), 'hopline-prefix-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const start = (name: string, env: Record<string, string>) => {
    const path = join(folder, `${name}.mjs`);
    writeFileSync(
      path,
      `export default { name: 'echo', description: 'Repeats', async *run(turn) { yield '${name}: ' + turn.text; } };`,
    );
    return Cluster.start({ nats, shards: SHARDS, env, agents: [{ name: 'echo', adapter: 'module', path }] });
  };
  await using plain = await start('plain', {});
  await using blue = await start('blue', { HOPLINE_PREFIX: 'blue' });
  const clusters = { plain, blue };
  const ask = async (cluster: Cluster) => textOf(await collect(cluster.url, { text: TEXT }), 'streaming_result');
  const answers = await Promise.all(
    Object.entries(clusters).flatMap(([name, cluster]) => Array.from({ length: TASKS }, async () => [name, await ask(cluster)])),
  );
  for (const [name, text] of answers) assert.equal(text, `${name}: ${TEXT}`);
  const ids = await Promise.all(
    Object.values(clusters).map(async ({ url }) => (await createClient({ url: `${url}/` }).list()).tasks.map(({ id }) => id)),
  );
  assert.deepEqual(
    ids.map(list => list.length),
    [TASKS, TASKS],
  );
  assert.equal(new Set(ids.flat()).size, 2 * TASKS);
});

test('the number of shards can change: a second cluster with a prefix takes new tasks while the first one ends its own', {
  timeout: 120_000,
}, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const folder = mkdtempSync(join(tmpdir(), 'hopline-shards-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'waiter.mjs');
  const go = join(folder, 'go');
  writeFileSync(
    path,
    `import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
export default { name: 'waiter', description: 'Waits', async *run(turn) {
  yield 'begin ';
  if (turn.text === 'wait') while (!existsSync(${JSON.stringify(go)})) await sleep(50);
  yield 'end';
} };`,
  );
  const agents = [{ name: 'waiter', adapter: 'module', path }];
  const answer = async (cluster: Cluster, text: string) => textOf(await collect(cluster.url, { text }), 'streaming_result');
  await using first = await Cluster.start({ nats, agents, env: { HOPLINE_SHARDS: '16' } });
  const open = answer(first, 'wait');
  await using second = await Cluster.start({ nats, agents, env: { HOPLINE_SHARDS: '4', HOPLINE_PREFIX: 'wide' } });
  assert.equal(await answer(second, 'now'), 'begin end');
  writeFileSync(go, '');
  assert.equal(await open, 'begin end');
  const listed = await createClient({ url: `${first.url}/` }).list();
  assert.equal(listed.tasks.length, 1, 'the first cluster still has its tasks, and only those');
});

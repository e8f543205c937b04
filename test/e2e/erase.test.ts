import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Task } from '@hopline/a2a';
import { createClient } from '@hopline/client';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../kit/until.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { HoplineCommand } from '../support/cluster/hopline-command.ts';

const SECRET = 'hunter2zebra';
/** With this many ended tasks in one shard, a relay moves them into the list of their owner within seconds. */
const TASKS = 8;
const AGENT = `export default { name: 'echo', description: 'Repeats', async *run(turn) {
  yield turn.text;
  if (turn.text === 'wait') await new Promise(resolve => turn.signal.addEventListener('abort', resolve));
} };
`;

test('an erased task is in no stream, clients get the answer for an unknown task, and other tasks stay', {
  timeout: 120_000,
}, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-erase-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'echo.mjs');
  writeFileSync(path, AGENT);
  await using cluster = await Cluster.start({ users: true, shards: 1, agents: [{ name: 'echo', adapter: 'module', path }] });
  const nc = await connect({ servers: cluster.nats.url, user: 'admin', pass: 'admin' });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  const streamsWith = async (text: string) => {
    const found: string[] = [];
    for await (const { config, state } of jsm.streams.list())
      for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq += 1) {
        const message = await jsm.streams.getMessage(config.name, { seq });
        if (message !== null && (message.string().includes(text) || message.subject.includes(text))) found.push(config.name);
      }
    return [...new Set(found)].toSorted();
  };
  const run = async (args: string[], environment: Record<string, string> = {}) =>
    await new HoplineCommand(cluster.url, args, '', environment).finished;
  const admin = { NATS_URL: cluster.nats.url, NATS_USER: 'admin', NATS_PASSWORD: 'admin' };
  const erase = (task: string, environment: Record<string, string> = admin) => run(['erase', task, '--json'], environment);
  const client = createClient({ url: `${cluster.url}/` });

  for (let n = 1; n < TASKS; n += 1) assert.equal((await run(['ask', `question ${n}`])).code, 0);
  const asked = await run(['ask', `my secret is ${SECRET}`, '--json']);
  const task = (JSON.parse(asked.out.trim().split('\n').at(-1)!) as { event: { statusUpdate: { taskId: string } } }).event
    .statusUpdate.taskId;
  assert.equal((await client.list()).tasks.length, TASKS);

  const denied = await erase(task, { ...admin, NATS_USER: 'operator', NATS_PASSWORD: 'operator' });
  assert.equal(denied.code, 1, denied.err);
  assert.match(
    denied.err,
    /Permission denied: task \S+ is not removed: NATS does not permit user operator to publish to .* as the user admin/,
  );
  assert.equal((await run(['get', task])).code, 0);

  const erased = await erase(task);
  assert.equal(erased.code, 0, erased.err);
  const { work: _work, inputs, facts, ...counts } = JSON.parse(erased.out).erased;
  assert.deepEqual(counts, { indexEntries: 1, listRows: 1, messageIds: 1, webhooks: 0 });
  assert.ok(inputs >= 2 && facts >= 2, erased.out);
  assert.deepEqual(await streamsWith(SECRET), []);
  // A server that has just shown the task has it in memory for some seconds.
  await until(() =>
    client.get(task).then(
      () => false,
      thrown => thrown.code === 'TASK_NOT_FOUND',
    ),
  );
  for (const args of [
    ['get', task],
    ['follow', task],
    ['cancel', task],
    ['trace', task, '--nats'],
  ]) {
    const { code, err } = await run(
      args,
      args.includes('--nats') ? { ...admin, NATS_USER: 'operator', NATS_PASSWORD: 'operator' } : {},
    );
    assert.equal(code, 1, `${args}: ${err}`);
    assert.match(err, /Task not found/, args.join(' '));
  }
  const { tasks } = await client.list();
  assert.equal(tasks.length, TASKS - 1);
  assert.ok(tasks.every(({ id }) => id !== task));

  const again = await run(['erase', task], admin);
  assert.equal(again.code, 0, again.err);
  assert.match(again.out, /^the log stores nothing of task .*\nnot removed:\n {2}backups/);

  const waiting = new HoplineCommand(cluster.url, ['ask', 'wait']);
  await waiting.printed('wait'.length);
  const isOpen = ({ status }: Task) => status.state === 'TASK_STATE_WORKING';
  const open = (await until(async () => (await client.list()).tasks.find(isOpen))).id;
  const refused = await erase(open);
  assert.equal(refused.code, 1, refused.err);
  assert.match(refused.err, new RegExp(`task ${open} has not ended: end it with \`hopline cancel ${open}\``));
  assert.equal((await run(['erase', 'no task.'], admin)).code, 2);
  assert.equal((await run(['cancel', open])).code, 0);
  await waiting.finished;
});

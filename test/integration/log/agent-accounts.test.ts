import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job } from '@hopline/log';
import { accounts, type LogUser, openJetStreamLog, type ServerUser, serverUsers, userName } from '@hopline/log-jetstream';
import { until } from '../../kit/until.ts';
import { startNatsCluster } from '../../support/nats/nats-server.ts';

const AGENT = 'agent.guide';
const NODES = ['a', 'b', 'c'];
const ITEMS = 100;

const PASSWORDS = new Map<ServerUser, { text: string }>();
for (const user of serverUsers(['guide'])) PASSWORDS.set(user, { text: user });

const work = (taskId: string) =>
  ({ v: 1, taskId, contextId: 'c', turn: 1, profile: 'default', message: { role: 'user', parts: [] }, metadata: {} }) as never;

test('workers of an agent with an account of its own that stop while idle take at most one item each with them, in a cluster of NATS', {
  timeout: 300_000,
}, async t => {
  const cluster = await startNatsCluster(NODES, { config: accounts(PASSWORDS) });
  t.after(() => cluster.stop());
  const open = async (user: LogUser, node: string) => {
    const credentials = { user: userName(user), pass: user };
    const servers = cluster.servers.get(node)!.url;
    const log = await openJetStreamLog({ servers, name: 'test', user, credentials, replicas: 3, openTimeoutMs: 60_000 });
    t.after(() => log.close());
    return log;
  };
  const relay = await open('relay', 'a');
  const attempts = new Map<string, number>();
  const handler = async ({ work, attempt }: Job) => void attempts.set(work.taskId, attempt);
  const send = (id: string) => relay.work.request(AGENT, work(id), { id });

  const stop = new AbortController();
  const idle = [];
  for (const node of NODES) {
    const log = await open(AGENT, node);
    idle.push(log.work.take(AGENT, { slots: 2_048, signal: stop.signal }, handler));
  }
  await send('first');
  await until(() => attempts.has('first'), 'no worker takes the item');
  stop.abort();
  await Promise.all(idle);

  const next = new AbortController();
  const taking = (await open(AGENT, 'b')).work.take(AGENT, { slots: 2_048, signal: next.signal }, handler);
  for (let n = 0; n < ITEMS; n += 1) await send(`item-${n}`);
  await until(() => attempts.size === ITEMS + 1, 'an item was lost');
  next.abort();
  await taking;
  const again = [...attempts].filter(([, attempt]) => attempt > 1);
  assert.ok(again.length <= NODES.length, `${again.length} of ${ITEMS} items arrived at no worker first`);
});

import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Job, Log } from '@hopline/log';
import {
  accountOf,
  accounts,
  authorization,
  type LogUser,
  openJetStreamLog,
  type ServerUser,
  serverUsers,
  userName,
} from '@hopline/log-jetstream';
import { until } from '../../kit/until.ts';
import { startNats, startNatsCluster } from '../../support/nats/nats-server.ts';

const AGENT = 'agent.guide';
const NODES = ['a', 'b', 'c'];
const ITEMS = 100;
/** See AGENT_LIMITS. */
const CONNECTIONS_MAX = 1_024;

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

test('the log of one server moves to the account of the log when its folder is renamed, with its work', {
  timeout: 120_000,
}, async t => {
  const dir = mkdtempSync(join(tmpdir(), 'hopline-moved-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const open = (servers: string, user: LogUser) =>
    openJetStreamLog({ servers, name: 'test', user, credentials: { user: userName(user), pass: user } });
  const before = await startNats({ dir, config: authorization(PASSWORDS) });
  const relay = await open(before.url, 'relay');
  await relay.work.request(AGENT, work('kept'), { id: 'kept' });
  await relay.leases.put('relay.a', { owner: 'a' } as never);
  await relay.close();
  await before.stop();

  renameSync(join(dir, 'jetstream', '$G'), join(dir, 'jetstream', accountOf('relay')));
  const server = await startNats({ dir, config: accounts(PASSWORDS) });
  const later = await open(server.url, 'relay');
  const agent = await open(server.url, AGENT);
  t.after(async () => {
    await Promise.all([later.close(), agent.close()]);
    await server.stop();
  });
  assert.deepEqual((await later.leases.get('relay.a'))?.value, { owner: 'a' });
  const taken = new AbortController();
  await agent.work.take(AGENT, { slots: 1, signal: taken.signal }, async ({ work, attempt }) => {
    assert.deepEqual([work.taskId, attempt], ['kept', 1]);
    taken.abort();
  });
});

test('agents keep working while nats-server reads its configuration again, and one more has its account after the second time', {
  timeout: 120_000,
}, async t => {
  const more = new Map(PASSWORDS).set('agent.fair', { text: 'agent.fair' });
  const server = await startNats({ config: accounts(PASSWORDS) });
  const logs: Log[] = [];
  const open = async (user: LogUser) => {
    const log = await openJetStreamLog({ servers: server.url, name: 'test', user, credentials: { user, pass: user } });
    logs.push(log);
    return log;
  };
  t.after(async () => {
    await Promise.all(logs.map(log => log.close()));
    await server.stop();
  });
  await open('relay');
  const guide = await open(AGENT);
  // nats-server 2.15.2 reads the imports of a new account at the first reload, and connects them at the second.
  for (const comment of ['first', 'second']) {
    await server.reload(`# ${comment}\n${accounts(more)}`);
    await guide.agents.put('guide.1', { name: comment } as never);
  }
  await (await open('agent.fair')).agents.put('fair.1', { name: 'fair' } as never);
});

test('an agent opens no more connections than its account has, and others still connect', { timeout: 120_000 }, async t => {
  const server = await startNats({ config: accounts(PASSWORDS) });
  t.after(() => server.stop());
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  let [accepted, refused] = [0, 0];
  const open = () => {
    const socket = connect(server.port, '127.0.0.1').on('error', () => {});
    socket.on('data', (data: Buffer) => {
      if (data.includes('PONG')) accepted += 1;
      if (data.includes("-ERR 'maximum account active connections exceeded'")) refused += 1;
    });
    socket.write(`CONNECT ${JSON.stringify({ user: AGENT, pass: AGENT, verbose: false })}\r\nPING\r\n`);
    sockets.push(socket);
  };
  for (let n = 0; n < CONNECTIONS_MAX; n += 1) open();
  await until(() => accepted + refused === sockets.length, 'a connection was not answered');
  assert.deepEqual([accepted, refused], [CONNECTIONS_MAX, 0]);
  // The server checks the limit before it counts a connection, so that some that open at the same moment pass together.
  for (let n = 1; n <= 10; n += 1) {
    open();
    await until(() => accepted + refused === sockets.length, 'a connection was not answered');
    assert.deepEqual([accepted, refused], [CONNECTIONS_MAX, n]);
  }
  const credentials = { user: userName('relay'), pass: 'relay' };
  await (await openJetStreamLog({ servers: server.url, name: 'test', user: 'relay', credentials })).close();
});

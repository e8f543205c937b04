import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createClient } from '@hopline/client';
import { openJetStreamLog, userName } from '@hopline/log-jetstream';
import { until } from '../kit/until.ts';
import { collect, type Frame, frames, rpc, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster, loginOf } from '../support/cluster/cluster.ts';
import { HoplineCommand } from '../support/cluster/hopline-command.ts';
import { startWebhook } from '../support/webhooks/webhook.ts';

/** Every service does its whole work with the permissions of its own user, in a cluster with a prefix. */
const PREFIX = 'blue';
const ENV = {
  HOPLINE_PREFIX: PREFIX,
  HOPLINE_PUSH: 'true',
  HOPLINE_WEBHOOK_ALLOW: '127.0.0.1',
  HOPLINE_WEBHOOK_HTTP: 'true',
  HOPLINE_ACK_WAIT_MS: '5000',
  HOPLINE_DRAIN_TURNS_MS: '100',
  // A loaded machine restarts an agent slowly.
  HOPLINE_AGENT_GONE_MS: '60000',
};
const WORDS = 40;
const DENIED = /does not permit|[Pp]ermissions [Vv]iolation/;

let folder: string;
let cluster: Cluster;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-users-'));
  const path = join(folder, 'echo.mjs');
  const run = `async *run(turn) { if (turn.text === 'stop me') await new Promise(r => turn.signal.addEventListener('abort', r)); for (let i = 0; i < ${WORDS}; i++) { yield 'w' + i + ' '; await new Promise(r => setTimeout(r, 25)); } yield turn.text; }`;
  writeFileSync(path, `export default { name: 'echo', description: 'Repeats', ${run} };`);
  cluster = await Cluster.start({ users: true, env: ENV, notifiers: 1, agents: [{ name: 'echo', adapter: 'module', path }] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a command as an operator, with only the permissions of that user. */
const operate = (...argv: string[]) => {
  const login = { ...loginOf('operator', ENV), NATS_URL: cluster.nats.url, HOPLINE_PREFIX: PREFIX };
  return new HoplineCommand(cluster.url, argv, '', login).finished;
};

const words = (text: string) => `${Array.from({ length: WORDS }, (_, index) => `w${index} `).join('')}${text}`;

test('a delegated task, its list, its audit and a cancel need no more than the permissions of the services', {
  timeout: 120_000,
}, async () => {
  const received = await collect(cluster.url, { text: 'hello' });
  assert.equal(textOf(received, 'streaming_result'), words('hello'));
  const client = createClient({ url: `${cluster.url}/` });
  const { tasks } = await client.list();
  assert.equal(tasks.length, 1);
  const taskId = tasks[0]!.id;
  assert.equal((await client.get(taskId)).status.state, 'TASK_STATE_COMPLETED');
  const traced = await operate('trace', '--nats', taskId);
  assert.deepEqual([traced.code, traced.err], [0, ''], traced.out);
  const submitted = await client.send('stop me', { blocking: false });
  assert.ok('task' in submitted);
  const { id } = submitted.task;
  await until(async () => (await client.get(id)).status.state === 'TASK_STATE_WORKING');
  assert.equal((await client.cancel(id)).status.state, 'TASK_STATE_CANCELED');
});

test('an agent that clients address directly needs no further permissions', { timeout: 120_000 }, async () => {
  const url = cluster.agents[0]!.url;
  assert.equal(textOf(await collect(`${url}/`, { text: 'direct' }), 'response'), words('direct'));
  assert.equal((await createClient({ url: `${url}/` }).list()).tasks.length, 1);
});

test('no further permissions are needed for work that a stopped agent requeues, or for shards that a killed relay leaves', {
  timeout: 120_000,
}, async () => {
  const [agent, relay] = [cluster.agents[0]!, cluster.relays[0]!];
  const restart = async () => {
    await agent.kill('SIGTERM');
    await relay.kill('SIGKILL');
    await Promise.all([agent.start(), relay.start()]);
  };
  const all: Frame[] = [];
  let restarted: Promise<void> | undefined;
  for await (const frame of frames(cluster.url, { text: 'again' })) {
    all.push(frame);
    if (textOf(all, 'streaming_result') !== '') restarted ??= restart();
  }
  assert.ok(restarted !== undefined, 'the text began');
  await restarted;
  assert.equal(textOf(all, 'streaming_result'), words('again'));
});

test('a webhook is stored, called and deleted with the permissions of ingress and notifier', { timeout: 120_000 }, async () => {
  await using webhook = await startWebhook();
  const configuration = { pushNotificationConfig: { url: `${webhook.url}/hook`, token: 'tok' }, blocking: false };
  const message = { kind: 'message', role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text: 'push' }] };
  type Result = { pushNotificationConfig: { id: string } }[] & { id: string };
  const call = async (method: string, params: Record<string, unknown>) =>
    (await rpc(cluster.url, { method, params })).json() as Promise<{ result: Result }>;
  const { id } = (await call('message/send', { message, configuration })).result;
  await webhook.until(() => webhook.accepted().length > 0);
  const { result: configs } = await call('tasks/pushNotificationConfig/list', { id });
  assert.equal(configs.length, 1);
  await call('tasks/pushNotificationConfig/delete', { id, pushNotificationConfigId: configs[0]!.pushNotificationConfig.id });
  assert.deepEqual((await call('tasks/pushNotificationConfig/list', { id })).result, []);
});

test('an operator verifies, replays and compares tasks that a killed relay left, by id or all together', {
  timeout: 120_000,
}, async () => {
  const { tasks } = await createClient({ url: `${cluster.url}/` }).list();
  const ids = tasks.filter(({ status }) => status.state === 'TASK_STATE_COMPLETED').map(({ id }) => id);
  const named = await operate('verify', ...ids);
  assert.deepEqual([named.code, named.out], [0, `${ids.length} tasks: ${ids.length} same, 0 differ, 0 failed, 0 unreadable\n`]);
  const all = await operate('verify', '--all', '--sample', '100', '--json');
  const counts = JSON.parse(all.out.trim().split('\n').at(-1)!) as Record<string, number>;
  assert.deepEqual([all.code, counts.tasks! >= ids.length, counts.same], [0, true, counts.tasks], all.out);
  const whatIf = await operate('what-if', '--all', '--event-cost', '0', '--event-cost', '1000');
  assert.deepEqual([whatIf.code, whatIf.out.split('\n').length], [0, 7], whatIf.out);
  assert.equal((await operate('diff', ids[0]!, ids[0]!)).code, 0);
  assert.equal((await operate('diff', ids[0]!, ids[1]!)).code, 1);
  assert.equal((await operate('verify', 'unknown-task')).code, 1);
});

test('no service was denied anything', () => {
  for (const service of cluster.services) assert.doesNotMatch(service.output, DENIED, service.spec.instance);
});

test('a malicious sub-agent can forge neither facts nor inputs of others, and cannot read webhooks', async () => {
  const credentials = { user: userName('agent.echo', PREFIX), pass: 'agent.echo' };
  const log = await openJetStreamLog({
    servers: cluster.nats.url,
    name: 'evil',
    prefix: PREFIX,
    user: 'agent.echo',
    credentials,
  });
  const denied = { name: 'LogDenied' };
  const { tasks } = await createClient({ url: `${cluster.url}/` }).list();
  const taskId = tasks[0]!.id;
  const newest = (await log.facts.last(taskId))!;
  await assert.rejects(log.facts.append(newest.record, { expected: newest.seq, id: 'forged' }), denied);
  await assert.rejects(log.pushConfigs.get(`${taskId}.x`), denied);
  await assert.rejects(log.leases.put('shard.0', { owner: 'me' }), denied);
  await assert.rejects(log.tasks.delete(taskId), denied);
  const work = { v: 1, taskId, contextId: 'c', turn: 1, profile: 'caipe', message: newest.record } as never;
  await assert.rejects(log.work.request('agent.other', work, { id: 'x' }), denied);
  await assert.rejects(log.agents.put('other.x', {} as never), denied);
  // It may write to its own input subject, but the relay checks the claims of its records there.
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'x' }] };
  const owner = { tenant: 'A', subject: 'x' };
  const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe', owner } as const;
  await log.inputs.append('begun', { v: 1, at: Date.now(), from: 'client', input }, { id: 'begun' });
  await until(() => cluster.relays[0]!.output.includes('"reason":"wrong_writer"'));
  assert.equal(await log.facts.last('begun'), undefined);
  await log.close();
});

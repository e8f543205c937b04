import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { decodeSse, type Task } from '@hopline/a2a';
import { FACTS_STREAM } from '@hopline/log-jetstream';
import { until } from '../kit/until.ts';
import { userMessage } from '../kit/user-message.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster, SHARDS } from '../support/cluster/cluster.ts';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';

/**
 * A loss of power of the only nats-server, modelled by its effect on one stream: the server is killed, and the directory of the stream of
 * facts is put back as it was some time before. All other streams and buckets keep everything.
 */

const second = Promise.withResolvers<void>();
const third = Promise.withResolvers<void>();

let remote: RemoteAgent;
let nats: NatsServer;
let cluster: Cluster;
const store = mkdtempSync(join(tmpdir(), 'hopline-lost-facts-'));
const saved = mkdtempSync(join(tmpdir(), 'hopline-saved-facts-'));
const stream = join(store, 'jetstream', '$G', 'streams', FACTS_STREAM);

before(async () => {
  remote = await startRemoteAgent({
    dialect: '1.0',
    async *script({ text }) {
      yield { token: 'one ' };
      if (text === 'slow') await second.promise;
      yield { token: 'two ' };
      if (text === 'slow') await third.promise;
      yield { token: 'three' };
      yield { complete: true };
    },
  });
  nats = await startNats({ dir: store });
  cluster = await Cluster.start({ nats, shards: SHARDS, agents: [{ name: 'writer', adapter: 'a2a', url: remote.url }] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await nats?.stop();
  await remote?.close();
  for (const dir of [store, saved]) rmSync(dir, { recursive: true, force: true });
});

const message = (text: string) => ({ message: userMessage(text) });

async function call(
  method: string,
  params: Record<string, unknown>,
): Promise<{ result?: Task & { task: Task }; error?: unknown }> {
  return (await rpc(cluster.url, { dialect: '1.0', method, params })).json() as never;
}

const textOf = (task: Task | undefined) =>
  (task?.artifacts ?? []).flatMap(({ parts }) => parts.map(part => part.text ?? '')).join('|');
const isCompleted = (task: Task | undefined) => task?.status.state === 'TASK_STATE_COMPLETED';

test('after the log has lost its tail, an open viewer gets a gap, the task and its end, and every task still exists', {
  timeout: 180_000,
}, async () => {
  assert.ok(isCompleted((await call('SendMessage', message('early'))).result?.task));
  const frames: { event: string | undefined; json: string }[] = [];
  const viewing = (async () => {
    const response = await rpc(cluster.url, { dialect: '1.0', method: 'SendStreamingMessage', params: message('slow') });
    for await (const { event, data } of decodeSse(response.body!)) frames.push({ event, json: data });
  })();
  await until(() => frames.some(({ json }) => json.includes('one ')), 'the first token');
  cpSync(stream, saved, { recursive: true });
  second.resolve();
  await until(() => frames.some(({ json }) => json.includes('two ')), 'the second token');
  const whole = (await call('SendMessage', message('quick'))).result?.task;
  assert.ok(isCompleted(whole));

  await nats.kill();
  rmSync(stream, { recursive: true });
  cpSync(saved, stream, { recursive: true });
  await nats.restart();
  third.resolve();
  await viewing;

  const gap = frames.findIndex(({ event }) => event === 'gap');
  assert.ok(gap > 0, JSON.stringify(frames));
  const rest = frames.slice(gap + 1).map(({ json }) => json);
  assert.match(rest[0]!, /"task":/);
  assert.match(rest.at(-1)!, /TASK_STATE_COMPLETED/);
  const { id } = (JSON.parse(rest[0]!) as { result: { task: Task } }).result.task;
  const slow = (await call('GetTask', { id })).result;
  assert.match(textOf(slow), /one two three/);
  const found = await until(async () => {
    const { result } = await call('GetTask', { id: whole!.id });
    return isCompleted(result) && result;
  }, 'the task that was gone');
  assert.equal(textOf(found), textOf(whole));
  assert.match(cluster.relays.map(({ output }) => output).join(''), /the log lost records of a shard/);
  assert.ok(isCompleted((await call('SendMessage', message('later'))).result?.task));
});

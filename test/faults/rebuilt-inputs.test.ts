import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Task } from '@hopline/a2a';
import { INPUTS_STREAM } from '@hopline/log-jetstream';
import { jetstreamManager, type StreamConfig } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { until } from '../kit/until.ts';
import { userMessage } from '../kit/user-message.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

let remote: RemoteAgent;
let cluster: Cluster;
let nc: NatsConnection;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '1.0',
    script: ({ text, turn }) =>
      text === 'deploy' && turn === 1 ? [{ inputRequired: 'where to?' }] : [{ token: `done: ${text}` }, { complete: true }],
  });
  cluster = await Cluster.start({ agents: [{ name: 'deployer', adapter: 'a2a', url: remote.url }] });
  nc = await connect({ servers: cluster.nats.url });
});

after(async () => {
  await nc?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

async function send(text: string, taskId?: string): Promise<Task> {
  const message = userMessage(text, { ...(taskId && { taskId }) });
  const response = await rpc(cluster.url, { dialect: '1.0', method: 'SendMessage', params: { message } });
  const { result, error } = (await response.json()) as { result: { task: Task }; error?: unknown };
  assert.equal(error, undefined);
  return result.task;
}

const outputOf = (service: { output: string }[]) => service.map(({ output }) => output).join('');

test('after the stream of inputs was lost and created again, open and new tasks continue', { timeout: 120_000 }, async () => {
  for (let earlier = 0; earlier < 20; earlier += 1) await send('hello');
  const asked = await send('deploy');
  assert.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED', JSON.stringify(asked.status));
  await (await jetstreamManager(nc)).streams.delete(INPUTS_STREAM);
  for (const service of [...cluster.relays, ...cluster.ingresses]) {
    await service.kill('SIGTERM');
    await service.start();
  }
  await until(() => /log: inputs_rebuilt/.test(outputOf([...cluster.relays, ...cluster.ingresses])));
  const done = await send('prod', asked.id);
  assert.equal(done.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(done.status));
  assert.equal((await send('hello')).status.state, 'TASK_STATE_COMPLETED');
});

test('a stream of inputs that was restored to an earlier state is read from its beginning', { timeout: 120_000 }, async () => {
  const jsm = await jetstreamManager(nc);
  const { config } = await jsm.streams.info(INPUTS_STREAM);
  await jsm.streams.delete(INPUTS_STREAM);
  const { first_seq: _first, ...restored } = config;
  await jsm.streams.add({ ...restored, first_seq: 1 } as StreamConfig);
  const [relay] = cluster.relays;
  await relay!.kill();
  await relay!.start();
  const { status } = await send('hello');
  assert.equal(status.state, 'TASK_STATE_COMPLETED', JSON.stringify(status));
  await until(() => /log: inputs_behind/.test(relay!.output));
});

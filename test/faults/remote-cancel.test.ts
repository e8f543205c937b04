import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../kit/until.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import type { Step } from '../support/agents/remote-task.ts';
import { type Frame, frames, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const ACK_WAIT_MS = 5_000;
/**
 * Milliseconds from a client's cancel until it reaches a remote agent whose sub-agent has died: the ack wait, the start of another
 * sub-agent, and a margin for a busy machine.
 */
const CANCEL_REACHES_MS_MAX = 30_000;
/** Longest pause between two requests of a cancel, with some margin. */
const REPEATED_MS_MAX = 4_500;
/** One minute of text. */
const TOKENS = 3_000;

let remote: RemoteAgent;
let cluster: Cluster;
/** Runs of the remote agent: how many tokens each has sent, and how many send now. */
const sent: number[] = [];
let talking = 0;
let talkingMax = 0;

async function* talk(): AsyncGenerator<Step> {
  const run = sent.push(0) - 1;
  talking += 1;
  talkingMax = Math.max(talkingMax, talking);
  try {
    for (let token = 0; token < TOKENS; token += 1) {
      sent[run] = token + 1;
      yield { token: `${token} ` };
      yield { pause: 20 };
    }
    yield { complete: true };
  } finally {
    talking -= 1;
  }
}

before(async () => {
  remote = await startRemoteAgent({ dialect: '0.3', script: talk });
  cluster = await Cluster.shared({
    agents: [{ name: 'talker', adapter: 'a2a', url: remote.url }],
    env: { HOPLINE_ACK_WAIT_MS: `${ACK_WAIT_MS}` },
  });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** Starts a task and resolves with its id once its text flows; `frames` grows until the stream ends. */
async function flowing(): Promise<{ taskId: string; list: Frame[]; reading: Promise<void> }> {
  const list: Frame[] = [];
  const flows = Promise.withResolvers<void>();
  const reading = (async () => {
    for await (const frame of frames(cluster.url, { text: 'count' })) {
      list.push(frame);
      if (list.filter(({ event }) => 'artifactUpdate' in event).length > 8) flows.resolve();
    }
  })();
  reading.catch(flows.reject);
  await flows.promise;
  return { taskId: (list[0]!.result as { id: string }).id, list, reading };
}

const cancel = async (id: string) => {
  const { result } = (await (await rpc(cluster.url, { method: 'tasks/cancel', params: { id } })).json()) as {
    result: { status: { state: string } };
  };
  assert.equal(result.status.state, 'canceled');
};
const methods = () => remote.requests.map(({ method }) => method).filter(method => method !== 'get' && method !== 'subscribe');

test('if its sub-agent was killed, a remote agent still gets the cancel of the client, and stops', {
  timeout: 120_000,
}, async t => {
  const before = remote.requests.length;
  const { taskId, reading } = await flowing();
  await cluster.agents[0]!.kill();
  await sleep(300);
  await cancel(taskId);
  const canceledMs = performance.now();
  await reading;
  await cluster.agents[0]!.start();
  await until(() => talking === 0, 'the remote agent stops', CANCEL_REACHES_MS_MAX);
  t.diagnostic(`the remote agent stopped ${Math.round(performance.now() - canceledMs)} ms after the cancel`);
  assert.deepEqual(methods().slice(before), ['stream', 'cancel']);
  assert.equal(remote.requests.at(-1)!.taskId, remote.requests[before]!.taskId);
  assert.ok(sent.at(-1)! < TOKENS);
});

test('the next attempt ends the run of a killed sub-agent before it begins another', { timeout: 120_000 }, async () => {
  const before = methods().length;
  talkingMax = 0;
  const { taskId, reading } = await flowing();
  await cluster.agents[0]!.kill();
  await cluster.agents[0]!.start();
  await until(() => methods().slice(before).length >= 3, 'the second run begins', CANCEL_REACHES_MS_MAX);
  assert.deepEqual(methods().slice(before), ['stream', 'cancel', 'stream']);
  await cancel(taskId);
  await reading;
  await until(() => talking === 0, 'the second run ends', CANCEL_REACHES_MS_MAX);
  assert.equal(talkingMax, 1, 'two runs never talk at once');
});

/** The remote agent after its restart: it has forgotten its tasks. */
async function restarted(port: number, methodsSeen: string[]) {
  const server = createServer(async (request, response) => {
    const { id, method } = request.method === 'POST' ? ((await json(request)) as { id: unknown; method: string }) : {};
    if (method === undefined) return void response.writeHead(404).end();
    methodsSeen.push(method);
    const error = { code: -32001, message: 'no such task' };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error }));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

test('a cancel is repeated while the remote agent restarts, until it refuses', { timeout: 120_000 }, async t => {
  const { taskId, reading } = await flowing();
  await remote.close();
  await cancel(taskId);
  await reading;
  await sleep(REPEATED_MS_MAX);
  const seen: string[] = [];
  const server = await restarted(Number(new URL(remote.url).port), seen);
  t.after(() => server.close());
  await until(() => seen.includes('tasks/cancel'), 'the cancel arrives', CANCEL_REACHES_MS_MAX);
  await sleep(REPEATED_MS_MAX);
  assert.equal(seen.filter(method => method === 'tasks/cancel').length, 1);
});

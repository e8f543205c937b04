import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type AgentCard, type Task, TaskState } from '@a2a-js/sdk';
import {
  AgentEvent,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { freePort } from '@hopline/local-cluster';
import express from 'express';
import { collect, type Frame, frames, textOf } from '../../support/cluster/a2a-stream.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { Guide } from '../../support/guides/guide.ts';

const GUIDE = new Guide('from-a2a-sdk.md');
const LINE = 'Roses are red, the sea is blue.';

/** The server of the guide at a free port. */
async function startServer(t: TestContext, folder: string): Promise<string> {
  const port = await freePort();
  assert.equal(GUIDE.command('node '), 'node server.mjs');
  const server = spawn(process.execPath, [join(folder, 'server.mjs')], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => server.kill());
  const [printed] = await once(server.stdout.setEncoding('utf8'), 'data');
  const [, url] = /listening at (\S+)/.exec(printed) ?? assert.fail(printed);
  return url!;
}

test('the server of the guide works behind Hopline, and its stream can be resumed after its end', {
  timeout: 120_000,
}, async t => {
  const url = await startServer(t, GUIDE.folder(t, ['server.mjs']));
  const [agents] = GUIDE.agents();
  const agent = { ...agents![0]!, url };
  const { HOPLINE_PROFILE: profile = '' } = GUIDE.npmStart().env;
  await using cluster = await Cluster.start({ agents: [agent], profile });
  const list = await collect(cluster.url, { text: 'the sea' });
  assert.equal(textOf(list, 'poem'), LINE);
  const [first] = list;
  const rest: Frame[] = [];
  const params = { id: (first!.result as { id: string }).id };
  for await (const frame of frames(cluster.url, { method: 'tasks/resubscribe', params, lastEventId: first!.id }))
    rest.push(frame);
  assert.deepEqual(
    rest.map(({ id }) => id),
    list.slice(1).map(({ id }) => id),
  );
  assert.equal(textOf(rest, 'poem'), LINE);
});

test('the module of the guide writes the same line', { timeout: 120_000 }, async t => {
  const agentsFolder = GUIDE.folder(t, ['poet.ts']);
  await using cluster = await Cluster.start({ agents: GUIDE.agents()[1]!, agentsFolder, profile: 'transparent' });
  const list = await collect(cluster.url, { text: 'the sea' });
  assert.equal(textOf(list, 'response'), LINE);
  assert.equal(textOf(list, 'poem.md'), '# the sea\n');
});

/** A task store whose writes wait while it is closed, as a database's writes may do for a moment. */
class SlowStore extends InMemoryTaskStore {
  closed: Promise<void> | undefined;
  readonly waiting = Promise.withResolvers<void>();

  override async save(...args: Parameters<InMemoryTaskStore['save']>): Promise<void> {
    if (this.closed !== undefined) this.waiting.resolve();
    await this.closed;
    await super.save(...args);
  }
}

test('the server of the SDK loses an event for a subscriber that comes while the event is being stored', {
  timeout: 120_000,
}, async t => {
  const status = (state: TaskState) => ({ state, message: undefined, timestamp: undefined });
  const bus = Promise.withResolvers<{ bus: ExecutionEventBus; taskId: string; contextId: string }>();
  const ended = Promise.withResolvers<void>();
  const executor = {
    async execute({ taskId, contextId, userMessage }: RequestContext, events: ExecutionEventBus) {
      const task: Task = {
        id: taskId,
        contextId,
        status: status(TaskState.TASK_STATE_WORKING),
        artifacts: [],
        history: [userMessage],
        metadata: undefined,
      };
      events.publish(AgentEvent.task(task));
      bus.resolve({ bus: events, taskId, contextId });
      await ended.promise;
    },
    async cancelTask() {},
  };
  const store = new SlowStore();
  const app = express();
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' }];
  const card = { supportedInterfaces, capabilities: { streaming: true, extensions: [] } } as unknown as AgentCard;
  const requestHandler = new DefaultRequestHandler(card, store, executor);
  app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));

  const request = (method: string, params: object) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
  const question = await request('SendStreamingMessage', {
    message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hi' }] },
  });
  const { bus: events, taskId, contextId } = await bus.promise;
  const publish = (text: string, append: boolean) =>
    events.publish(
      AgentEvent.artifactUpdate({
        taskId,
        contextId,
        append,
        lastChunk: false,
        metadata: undefined,
        artifact: {
          artifactId: 'a',
          name: 'answer',
          description: '',
          parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
          metadata: undefined,
          extensions: [],
        },
      }),
    );
  const reader = question.body!.pipeThrough(new TextDecoderStream()).getReader();
  await reader.read();

  const { promise: closed, resolve: open } = Promise.withResolvers<void>();
  store.closed = closed;
  publish('lost', false);
  await store.waiting.promise;
  const late = await request('SubscribeToTask', { id: taskId });
  const lateReader = late.body!.pipeThrough(new TextDecoderStream()).getReader();
  let received = (await lateReader.read()).value ?? '';
  open();
  publish('kept', true);
  events.publish(
    AgentEvent.statusUpdate({ taskId, contextId, status: status(TaskState.TASK_STATE_COMPLETED), metadata: undefined }),
  );
  events.finished();
  ended.resolve();
  for (let part = await lateReader.read(); !part.done; part = await lateReader.read()) received += part.value;
  let asked = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) asked += part.value;
  assert.match(asked, /"lost"/);
  assert.match(received, /"kept"/);
  assert.doesNotMatch(received, /"lost"/);
});

test('every part of the guide was run', () => GUIDE.assertAllTaken());

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Message, Task } from '@hopline/a2a';
import { type Agent, serveAgent } from '@hopline/agent';
import { BEGINNING, createClient } from '@hopline/client';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { createHopMetrics, createLogger } from '@hopline/telemetry';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { HoplineCommand } from '../support/cluster/hopline-command.ts';

/** The example of S3: 4, 6, and the sum of earlier answers. */
const TURNS = ['2+2', '3+3', 'Add them together'];
const ANSWERS = ['2 + 2 = 4', '3 + 3 = 6', '4 + 6 = 10'];

/** Answers by context id of the remote agent. */
const sums = new Map<string, number[]>();

function answerTo(text: string, known: readonly number[]): string {
  const [a = 0, b = 0] = text.includes('+') ? text.split('+').map(Number) : known;
  return `${a} + ${b} = ${a + b}`;
}

const resultIn = (text: string) => Number(/= (\d+)$/.exec(text)?.[1]);
const textIn = (message: Pick<Message, 'parts'>) => message.parts.map(part => part.text ?? '').join('');

/** Uses only the history of its turn. */
const forgetful: Agent = {
  description: 'Adds numbers and remembers nothing.',
  skills: async () => [],
  async *run({ message, history }) {
    if (textIn(message) === 'history') return yield { type: 'text', text: history.map(textIn).join(' | ') };
    const known = history.filter(({ role }) => role === 'ROLE_AGENT').map(reply => resultIn(textIn(reply)));
    yield { type: 'text', text: answerTo(textIn(message), known) };
  },
  close: async () => {},
};

let remote: RemoteAgent;
let cluster: Cluster;
let leave: () => Promise<void>;

/** Serves the agent as a new process would: with a new connection and no state. */
async function serveForgetful(): Promise<void> {
  const log = await openJetStreamLog({ servers: cluster.nats.url, name: 'sums' });
  const logger = createLogger({ service: 'sub-agent', instance: 'sums', level: 'silent' });
  const stop = new AbortController();
  const registered = Promise.withResolvers<void>();
  const served = serveAgent({
    log,
    name: 'sums',
    agent: { ...forgetful },
    url: 'http://127.0.0.1:9/',
    slots: 4,
    signal: stop.signal,
    logger,
    metrics: createHopMetrics('test'),
    onRegistered: () => registered.resolve(),
  });
  await Promise.race([registered.promise, served]);
  leave = async () => {
    stop.abort();
    await served;
    await log.close();
  };
}

before(async () => {
  remote = await startRemoteAgent({
    dialect: '1.0',
    ownContexts: true,
    script: ({ text, contextId, turn }) => {
      if (text === 'deploy' && turn === 1) return [{ inputRequired: 'where to?' }];
      const known = sums.get(contextId) ?? [];
      const answer = turn === 1 ? answerTo(text, known) : `deployed to ${text}`;
      sums.set(contextId, [...known, resultIn(answer)]);
      return [{ token: answer }, { complete: true }];
    },
  });
  cluster = await Cluster.shared({ replicas: 2, agents: [{ name: 'remembers', adapter: 'a2a', url: remote.url }] });
  await serveForgetful();
});

after(async () => {
  await leave?.();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

let messages = 0;

async function send(agent: string, text: string, more: Partial<Message> = {}): Promise<Task> {
  messages += 1;
  const message = { messageId: `m${messages}`, role: 'ROLE_USER', parts: [{ text }], ...more };
  const { url } = cluster.ingresses[messages % 2]!;
  const request = { dialect: '1.0', method: 'SendMessage', params: { message, metadata: { agent } } } as const;
  const { result, error } = (await (await rpc(url, request)).json()) as { result: { task: Task }; error?: unknown };
  assert.equal(error, undefined);
  return result.task;
}

const answerIn = ({ artifacts = [] }: Task) => textIn(artifacts.find(({ name }) => name === 'partial_result') ?? { parts: [] });

async function restartWorkers(): Promise<void> {
  const restart = async (service: (typeof cluster.services)[number]) => {
    await service.kill();
    await service.start();
  };
  await leave();
  await Promise.all([restart(cluster.supervisors[0]!), restart(cluster.agents[0]!), serveForgetful()]);
}

for (const [agent, how] of [
  ['sums', 'without memory gets the history'],
  ['remembers', 'that assigns context ids is called with its own'],
] as const) {
  test(`three tasks of one context, with a new supervisor and new agents for each: an agent ${how} [S3-17 S3-18]`, {
    timeout: 120_000,
  }, async () => {
    const answers: string[] = [];
    let contextId: string | undefined;
    for (const text of TURNS) {
      if (contextId !== undefined) await restartWorkers();
      const task = await send(agent, text, contextId === undefined ? {} : { contextId });
      assert.equal(task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(task.status));
      answers.push(answerIn(task));
      // Hopline assigns the context with the first task, and the client sends it with the later ones.
      contextId = task.contextId;
    }
    assert.deepEqual(answers, ANSWERS);
    const elsewhere = await send(agent, 'Add them together', { contextId: 'another context' });
    assert.equal(answerIn(elsewhere), '0 + 0 = 0');
  });
}

test('a fork has the history up to its cursor, and its context continues from there after every process was replaced', {
  timeout: 120_000,
}, async () => {
  const first = await send('sums', '2+2');
  const origin = await send('sums', '3+3', { contextId: first.contextId });
  const client = createClient({ url: cluster.ingresses[0]!.url });
  const before = await client.get(origin.id);
  const cursors: string[] = [];
  for await (const item of client.subscribe(origin.id, { cursor: BEGINNING })) if ('event' in item) cursors.push(item.cursor!);
  const hopline = (argv: readonly string[]) => new HoplineCommand(cluster.ingresses[1]!.url, argv).finished;
  const forked = await hopline(['fork', origin.id, '--at', cursors[0]!, 'history', '--yes']);
  assert.deepEqual([forked.code, forked.out], [0, '2+2 | 2 + 2 = 4 | 3+3'], forked.err);
  const last = await hopline(['fork', origin.id, '--at', cursors.at(-1)!, 'history', '--yes', '--json']);
  const { event } = JSON.parse(last.out.split('\n')[0]!) as { event: { task: Task } };
  assert.deepEqual(event.task.metadata?.['hopline.fork'], { taskId: origin.id, cursor: cursors.at(-1) });
  assert.notEqual(event.task.contextId, origin.contextId);

  await leave();
  await Promise.all(cluster.services.map(service => service.kill()));
  await Promise.all(cluster.services.map(service => service.start()));
  await serveForgetful();
  const next = await send('sums', 'history', { contextId: event.task.contextId });
  const whole = ['2+2', '2 + 2 = 4', '3+3', '3 + 3 = 6'];
  assert.equal(answerIn(next), [...whole, 'history', whole.join(' | ')].join(' | '));
  assert.deepEqual(await client.get(origin.id), before);

  const usage = await hopline(['fork', origin.id, '--at', cursors[0]!, 'history']);
  assert.deepEqual([usage.code, /repeat it with --yes/.test(usage.err)], [2, true]);
  const beyond = await hopline(['fork', origin.id, '--at', '999.1', 'history', '--yes']);
  assert.deepEqual([beyond.code, /cursor does not belong to this task/.test(beyond.err)], [1, true], beyond.err);
  const unknown = await hopline(['fork', 'unknown', '--at', '1.1', 'history', '--yes']);
  assert.equal(unknown.code, 1);
});

test('a question waits while each process is replaced, and its answer goes to the task that question [S0-4 S4-13]', {
  timeout: 120_000,
}, async () => {
  const question = await send('remembers', 'deploy');
  assert.equal(question.status.state, 'TASK_STATE_INPUT_REQUIRED', JSON.stringify(question.status));
  assert.equal(textIn(question.status.message!), 'where to?');
  await leave();
  await Promise.all(cluster.services.map(service => service.kill()));
  await cluster.nats.kill();
  await cluster.nats.restart();
  await Promise.all(cluster.services.map(service => service.start()));
  await serveForgetful();
  const done = await send('remembers', 'prod', { taskId: question.id });
  assert.deepEqual([done.id, done.status.state, answerIn(done)], [question.id, 'TASK_STATE_COMPLETED', 'deployed to prod']);
  const deploys = remote.requests.filter(({ text }) => text === 'deploy' || text === 'prod');
  assert.equal(new Set(deploys.map(({ taskId }) => taskId)).size, 1, 'one task of the agent');
  assert.deepEqual(
    done.history?.map(message => [message.role, textIn(message)]),
    [
      ['ROLE_USER', 'deploy'],
      ['ROLE_AGENT', 'where to?'],
      ['ROLE_USER', 'prod'],
    ],
  );
});

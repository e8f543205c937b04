import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Task } from '@hopline/a2a';
import { DRAFT_EXTENSION_URI } from '@hopline/agent-card';
import { userMessage } from '../kit/user-message.ts';
import { answer, type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, frames } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import type { ServiceProcess } from '../support/cluster/service-process.ts';

const ROUNDS = 10;
const TOKENS = Array.from({ length: 200 }, (_, index) => `${index} `);
const EXTENSION = { 'a2a-extensions': DRAFT_EXTENSION_URI };

let agent: RemoteAgent;
let cluster: Cluster;

function* play(text: string, turn: number): Generator<Step> {
  if (text === 'ask' && turn === 1) yield { inputRequired: 'Which one?' };
  else if (text === 'count') {
    for (const token of TOKENS) yield* [{ token }, { pause: 10 }] as Step[];
    yield { complete: true };
  } else yield* answer(['ok']);
}

before(async () => {
  agent = await startRemoteAgent({ dialect: '1.0', script: ({ text, turn }) => play(text, turn) });
  cluster = await Cluster.shared({ balanced: true, agents: [{ name: 'drafter', adapter: 'a2a', url: agent.url }] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await agent?.close();
});

type Answer = { status: number; body: { task?: Task; error?: { code: number; message: string; details: { reason: string }[] } } };

async function send({ url }: ServiceProcess, text: string, taskId?: string, ifGenerationMatch?: string): Promise<Answer> {
  const message = userMessage(text, { ...(taskId && { taskId }) });
  const response = await fetch(`${url}/message:send`, {
    method: 'POST',
    headers: { 'content-type': 'application/a2a+json', 'a2a-version': '1.0', ...EXTENSION },
    body: JSON.stringify({ message, configuration: { ...(ifGenerationMatch !== undefined && { ifGenerationMatch }) } }),
  });
  return { status: response.status, body: (await response.json()) as Answer['body'] };
}

async function get({ url }: ServiceProcess, taskId: string, currentGeneration?: string): Promise<Task> {
  const query = currentGeneration === undefined ? '' : `?currentGeneration=${currentGeneration}`;
  const response = await fetch(`${url}/tasks/${taskId}${query}`, { headers: { 'a2a-version': '1.0', ...EXTENSION } });
  assert.equal(response.status, 200);
  return (await response.json()) as Task;
}

const messagesOf = ({ timeline = [] }: Task) => timeline.flatMap(({ message }) => message?.parts[0]?.text ?? []);

test('if two clients answer the same generation at two ingresses, exactly one wins', { timeout: 180_000 }, async () => {
  const [first, second] = cluster.ingresses as [ServiceProcess, ServiceProcess];
  for (let round = 0; round < ROUNDS; round += 1) {
    const { task } = (await send(first, 'ask')).body;
    assert.equal(task?.status.state, 'TASK_STATE_INPUT_REQUIRED');
    const answers = await Promise.all(
      [first, second, second, first].map((ingress, index) => send(ingress, `answer ${index}`, task.id, task.generation)),
    );
    const refused = answers.filter(({ status }) => status !== 200);
    assert.deepEqual(
      refused.map(({ status, body }) => [status, body.error?.details[0]?.reason]),
      Array.from({ length: 3 }, () => [409, 'TASK_GENERATION_MISMATCH']),
    );
    const winner = answers.findIndex(({ status }) => status === 200);
    const after = await get(round % 2 === 0 ? first : second, task.id);
    assert.deepEqual(messagesOf(after), ['ask', `answer ${winner}`]);
    assert.equal(after.status.state, 'TASK_STATE_COMPLETED');
  }
});

test('a client follows a task to its end by long polls at another ingress', { timeout: 120_000 }, async () => {
  const [first, second] = cluster.ingresses as [ServiceProcess, ServiceProcess];
  const { task } = (await send(first, 'ask')).body;
  const seen = [task!.generation!];
  const polling = (async () => {
    for (;;) {
      const polled = await get(second, task!.id, seen.at(-1));
      if (polled.generation !== seen.at(-1)) seen.push(polled.generation!);
      if (polled.status.state === 'TASK_STATE_COMPLETED') return polled;
    }
  })();
  await send(first, 'the second', task!.id, task!.generation);
  const last = await polling;
  const generations = seen.map(Number);
  assert.deepEqual(
    generations,
    generations.toSorted((a, b) => a - b),
  );
  assert.equal(last.generation, (await get(first, task!.id)).generation);
});

test('the timeline has each status of a task whose relay was killed exactly once [S4-28]', { timeout: 120_000 }, async () => {
  const [first, second] = cluster.ingresses as [ServiceProcess, ServiceProcess];
  const message = userMessage('count');
  const request = { dialect: '1.0', method: 'SendStreamingMessage', params: { message } } as const;
  let taskId = '';
  let count = 0;
  let restarted: Promise<unknown> | undefined;
  for await (const { event } of frames(`${first.url}/`, request)) {
    if ('task' in event) taskId = event.task.id;
    count += 1;
    // All of them, so that the owner of the task is one of them.
    if (count === 10) restarted = cluster.killRelays().then(() => cluster.startRelays());
  }
  await restarted;
  const task = await get(second, taskId);
  const follow = { dialect: '1.0', method: 'SubscribeToTask', params: { id: taskId }, lastEventId: '0.0' } as const;
  const statuses = (await collect(`${second.url}/`, { ...follow, headers: EXTENSION })).flatMap(({ event }) =>
    'statusUpdate' in event ? [event.statusUpdate] : [],
  );
  const shown = task.timeline!.filter(({ status }) => status !== undefined);
  assert.deepEqual(
    shown.map(({ status, generation }) => [status, generation]),
    [[shown[0]!.status, '1'], ...statuses.map(({ status, generation }) => [status, generation])],
  );
  const transitions = shown.map(({ status }) => status!.state).filter((state, index, all) => state !== all[index - 1]);
  assert.deepEqual(transitions, ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']);
  assert.deepEqual(messagesOf(task), ['count']);
  assert.equal(new Set(shown.map(({ generation }) => generation)).size, shown.length);
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { type PythonSdk, type PythonStep, pythonWith, startPythonAgent } from '../support/agents/python-agent.ts';
import { type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { type Frame, frames, rpc, shapeOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const DIALECTS = ['0.3', '1.0'] as const;
const TIMEOUT = { timeout: 120_000 };

/** Wakes the agents that wait until the client has read the task. */
const looked = new EventTarget();
const remotes: RemoteAgent[] = [];
const stops: (() => Promise<void>)[] = [];
let cluster: Cluster;

const pythons = DIALECTS.map(dialect => {
  const sdk: PythonSdk = dialect === '0.3' ? '0.3' : '1';
  return { sdk, python: pythonWith(sdk) };
});

async function* script(steps: readonly Step[]): AsyncGenerator<Step> {
  const hasLooked = once(looked, 'look');
  yield* steps;
  yield { artifact: { artifactId: 'a', name: 'answer', text: 'one ' } };
  await hasLooked;
  yield { artifact: { artifactId: 'a', name: 'answer', text: 'two' }, append: true, lastChunk: true };
  yield { complete: true };
}

before(async () => {
  const agents: { name: string; adapter: 'a2a'; url: string }[] = [];
  for (const dialect of DIALECTS) {
    const version = dialect.replace('.', '-');
    const reports = await startRemoteAgent({ dialect, script: () => script([{ status: 'submitted' }, { status: 'working' }]) });
    const streams = await startRemoteAgent({ dialect, script: () => script([]) });
    remotes.push(reports, streams);
    agents.push({ name: `reports-${version}`, adapter: 'a2a', url: reports.url });
    agents.push({ name: `streams-${version}`, adapter: 'a2a', url: streams.url });
  }
  for (const { sdk, python } of pythons) {
    if (python === undefined) continue;
    const agent = await startPythonAgent(python, sdk, 'scripted');
    stops.push(agent.stop);
    agents.push({ name: `python-${sdk.replace('.', '-')}`, adapter: 'a2a', url: agent.url });
  }
  cluster = await Cluster.shared({ agents, profile: 'transparent' });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  for (const remote of remotes) await remote.close();
  for (const stop of stops) await stop();
});

async function resultOf(method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> {
  const response = await rpc(cluster.url, { dialect: '1.0', method, params });
  return ((await response.json()) as { result: Record<string, unknown> }).result;
}

/** Streams an answer, and reads the task when the first text has arrived. */
async function play(agent: string, text = 'hi') {
  const list: Frame[] = [];
  let read: unknown;
  let listed: unknown[] = [];
  const message = {
    role: 'user',
    kind: 'message',
    messageId: `${agent}-1`,
    parts: [{ kind: 'text', text }],
    metadata: { agent },
  };
  for await (const frame of frames(cluster.url, { params: { message } })) {
    list.push(frame);
    if (!('artifactUpdate' in frame.event) || read !== undefined) continue;
    const { taskId, contextId } = frame.event.artifactUpdate;
    read = ((await resultOf('GetTask', { id: taskId })).status as { state: string }).state;
    const page = await resultOf('ListTasks', { contextId, status: 'TASK_STATE_WORKING' });
    listed = (page.tasks as { id: string }[]).filter(({ id }) => id === taskId);
    looked.dispatchEvent(new Event('look'));
  }
  const shapes = list.map(shapeOf).filter((shape, index, all) => shape !== all[index - 1]);
  return { shapes, read, listed: listed.length };
}

const EXPECTED = {
  shapes: ['task', 'status:working', 'artifact:answer', 'artifact:answer+', 'status:completed'],
  read: 'TASK_STATE_WORKING',
  listed: 1,
};

for (const dialect of DIALECTS) {
  const version = dialect.replace('.', '-');
  test(
    `a ${dialect} agent reports that it works: the client reads it before the answer, in tasks/get and in the list`,
    TIMEOUT,
    async () => {
      assert.deepEqual(await play(`reports-${version}`), EXPECTED);
    },
  );

  test(`a ${dialect} agent that never reports that it works is shown as working by its first output`, TIMEOUT, async () => {
    assert.deepEqual(await play(`streams-${version}`), EXPECTED);
  });
}

for (const { sdk, python } of pythons) {
  const variable = `A2A_PYTHON_${sdk.replace('.', '_')}`;
  const skip = python === undefined && `no Python with a2a-sdk ${sdk}.x: install it with uvicorn, or name one in ${variable}`;
  test(`an agent of the Python SDK ${sdk}.x works while it streams`, { ...TIMEOUT, skip }, async () => {
    const steps: PythonStep[] = [
      ['status', 'working'],
      ['artifact', 'answer', 'one ', false, false],
      ['pause', 3],
      ['artifact', 'answer', 'two', true, true],
      ['status', 'completed'],
    ];
    const { shapes, read, listed } = await play(`python-${sdk.replace('.', '-')}`, JSON.stringify(steps));
    assert.deepEqual(
      shapes.map(shape => shape.replace(/:undefined|:response/, '')),
      ['task', 'status:working', 'artifact', 'artifact+', 'status:completed'],
    );
    assert.deepEqual([read, listed], [EXPECTED.read, EXPECTED.listed]);
  });
}

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { answer, type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, type Frame, frames, messageParams, shapeOf, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** Leading and trailing line breaks, notice glyphs, and text that resembles a notice (S2-10, S2-20). */
const TEXT = ['\n🔧 Calling argocd...\n', '\n\n', ' \t', 'v3.1.8', '\r\n', '\n'];

let child: RemoteAgent;
let cluster: Cluster;
let list: Frame[];

before(async () => {
  // The six events of S2: the submitted task, start and end of a call, the complete answer as one status, the empty marker, and an
  // end without a message.
  child = await startRemoteAgent({
    dialect: '0.3',
    script: ({ text, turn }) => {
      if (text.includes('newlines')) return answer(TEXT);
      if (text.includes('login')) {
        return [{ status: 'auth-required', text: 'log in there' }, { pause: 500 }, { token: 'welcome' }, { complete: true }];
      }
      if (text.includes('password') && turn === 1) return [{ status: 'auth-required', text: 'which?' }, { hang: true }];
      return turn === 2
        ? answer(['that one'])
        : [
            { notice: 'start', tool: 'version_service__version' },
            { notice: 'end', tool: 'version_service__version' },
            { status: 'working', text: `The version is v3.1.8. ${'All is well. '.repeat(40)}` },
            { marker: true },
            { complete: true },
          ];
    },
  });
  cluster = await Cluster.shared({ agents: [{ name: 'argocd', adapter: 'a2a', url: child.url }] });
  list = await collect(cluster.url, { params: messageParams('show version', { messageId: 'unique-msg-id' }) });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await child?.close();
});

test("the child's task is not a second task, and none of its ids reaches the client [S2-15]", () => {
  const tasks = list.filter(({ event }) => 'task' in event);
  assert.equal(tasks.length, 1);
  const shown = JSON.stringify(list.map(({ result }) => result));
  const [request] = child.requests;
  for (const id of [request!.taskId, request!.contextId]) assert.ok(id.length > 0 && !shown.includes(id));
  const ids = new Set(list.map(({ result }) => (result.kind === 'task' ? result.id : result.taskId)));
  assert.deepEqual([...ids], [(tasks[0]!.result as { id: string }).id]);
});

test('the states are submitted, working, completed, each once, in order [S2-16]', () => {
  const states = list.flatMap(({ event }) => {
    if ('task' in event) return [event.task.status.state];
    return 'statusUpdate' in event ? [event.statusUpdate.status.state] : [];
  });
  assert.deepEqual(states, ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']);
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
});

test('a status-update with the message in its status and `final` next to it is the complete answer [S2-17]', () => {
  const whole = `The version is v3.1.8. ${'All is well. '.repeat(40)}`;
  assert.deepEqual([textOf(list, 'streaming_result'), textOf(list, 'partial_result')], [whole, whole]);
});

test('the child is called by message/stream with an id and the role, parts and id of the message [S2-25]', () => {
  const [request] = child.requests;
  assert.equal(child.requests.length, 1);
  assert.equal(request!.method, 'stream');
  assert.ok(typeof request!.id === 'string' || typeof request!.id === 'number');
  const { role, parts, messageId } = request!.params.message as { role: string; parts: object[]; messageId: string };
  assert.equal(role, 'user');
  assert.deepEqual(parts, [{ kind: 'text', text: 'show version' }]);
  assert.ok(messageId.length > 0);
});

test('supervisor and agents share no memory: each is a process, and may be replaced between turns [S2-24]', async () => {
  const pids = cluster.services.map(({ pid }) => pid);
  assert.equal(new Set(pids).size, pids.length);
  await Promise.all([cluster.supervisors[0]!, cluster.agents[0]!].map(service => service.kill().then(() => service.start())));
  const again = await collect(cluster.url, { text: 'show version' });
  assert.deepEqual(textOf(again, 'partial_result'), textOf(list, 'partial_result'));
});

test('line breaks before, within and after a text arrive byte for byte [S2-20]', async () => {
  const list = await collect(cluster.url, { text: 'newlines' });
  for (const name of ['streaming_result', 'partial_result']) assert.equal(textOf(list, name), TEXT.join(''));
  assert.equal(textOf(list, 'tool_notification_start'), '🔧 Supervisor: Calling Agent Argocd...\n', 'a notice as well');
});

test('a stream stays open while an agent gets its credentials out of band, and continues [S3-5]', async () => {
  const seen = await collect(cluster.url, { text: 'login' });
  assert.deepEqual(
    seen.map(shapeOf).filter(shape => shape.startsWith('status')),
    ['status:working', 'status:auth_required', 'status:working', 'status:completed'],
  );
  assert.equal(textOf(seen, 'partial_result'), 'welcome');
});

test("an answer in a message goes to the agent's waiting task, and the first stream shows it too [S3-5]", async () => {
  let answered: Promise<Frame[]> | undefined;
  const seen: Frame[] = [];
  for await (const frame of frames(cluster.url, { text: 'password' })) {
    seen.push(frame);
    const taskId = (seen[0]!.result as { id: string }).id;
    if (shapeOf(frame) === 'status:auth_required') answered = collect(cluster.url, { params: messageParams('this', { taskId }) });
  }
  assert.equal(shapeOf(seen.at(-1)!), 'status:completed');
  for (const list of [seen, await answered!]) assert.equal(textOf(list, 'partial_result'), 'that one');
  const tasks = child.requests.filter(({ text }) => text === 'password' || text === 'this').map(({ taskId }) => taskId);
  assert.deepEqual([tasks.length, new Set(tasks).size], [2, 1]);
  assert.ok(!child.requests.some(({ method }) => method === 'cancel'));
});

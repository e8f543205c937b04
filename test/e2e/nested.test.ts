import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { freePort } from '@hopline/local-cluster';
import type { TaskBelow } from '@hopline/task-audit';
import { until } from '../kit/until.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, type Frame, frames, messageParams, rpc, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { HoplineCommand } from '../support/cluster/hopline-command.ts';
import { ServiceProcess } from '../support/cluster/service-process.ts';

const TOKENS = ['**Argo**', 'CD', ' ', '\n', '\n\n', 'ha', 'ha', ' ✅ done', ' 👩‍👩‍👧', ' failed', '\t', ' '];
const ANSWER = TOKENS.join('');

let remote: RemoteAgent;
/** The first cluster serves the clients; the last one calls the remote agent. */
let clusters: Cluster[] = [];

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text, turn }) {
      if (text.includes('ask') && turn === 1) return yield { inputRequired: 'Which one?' };
      yield { notice: 'start', tool: 'version_service__version' };
      for (const token of TOKENS) {
        yield { token };
        // Pauses long enough for a cancel to pass through three clusters.
        yield { pause: text.includes('slow') ? 5_000 : 2 };
      }
      yield { notice: 'end', tool: 'version_service__version' };
      yield { complete: true };
    },
  });
  let { url } = remote;
  for (const name of ['argocd', 'regional', 'global']) {
    const cluster = await Cluster.start({ agents: [{ name, adapter: 'a2a', url }] });
    clusters = [cluster, ...clusters];
    url = cluster.url;
  }
});

after(async () => {
  await Promise.all(clusters.map(cluster => cluster[Symbol.asyncDispose]()));
  await remote?.close();
});

const top = () => clusters[0]!.url;
const taskIdOf = (list: readonly Frame[]) => (list[0]!.result as { id: string }).id;

function foldOf(list: readonly Frame[]): Fold {
  const fold = new Fold();
  for (const { event } of list) fold.add(event);
  return fold;
}

type Notice = { phase: 'start' | 'end'; id: string; text: string };

function noticesOf(list: readonly Frame[]): Notice[] {
  return list.flatMap(({ event }) => {
    if (!('artifactUpdate' in event)) return [];
    const { name, parts, metadata } = event.artifactUpdate.artifact;
    const phase = name === 'tool_notification_start' ? 'start' : name === 'tool_notification_end' ? 'end' : undefined;
    if (phase === undefined) return [];
    return [
      {
        phase,
        id: String(metadata?.toolCallId),
        text: parts
          .map(part => part.text)
          .join('')
          .trim(),
      },
    ];
  });
}

/** The newest task of a cluster. */
async function newestTask(url: string): Promise<{ id: string; contextId: string; status: { state: string } }> {
  const response = await rpc(url, { dialect: '1.0', method: 'ListTasks', params: { pageSize: 1 } });
  const { result } = (await response.json()) as {
    result: { tasks: [{ id: string; contextId: string; status: { state: string } }] };
  };
  return result.tasks[0];
}

test('three nested clusters: one text, byte for byte, one plan, and each call within its outer call [S2-7]', {
  timeout: 120_000,
}, async () => {
  const list = await collect(top(), { text: 'go' });
  const fold = foldOf(list);
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(textOf(list, 'streaming_result'), ANSWER);
  assert.equal(textOf(list, 'partial_result'), ANSWER);
  const plans = list.flatMap(({ event }) =>
    'artifactUpdate' in event && event.artifactUpdate.artifact.name?.startsWith('execution_plan')
      ? [event.artifactUpdate.artifact.artifactId]
      : [],
  );
  assert.equal(new Set(plans).size, 1);
  const answers = list.flatMap(({ event }) =>
    'artifactUpdate' in event && event.artifactUpdate.artifact.name === 'streaming_result' ? [event.artifactUpdate] : [],
  );
  assert.ok(!JSON.stringify(answers).includes('Execution Plan'), 'no plan of a cluster below was ever answer text');
  assert.equal(answers.filter(({ append }) => append !== true).length, 1);
  const notices = noticesOf(list);
  assert.deepEqual(
    notices.map(({ text }) => text),
    [
      '🔧 Supervisor: Calling Agent Global...',
      '🔧 Global: Calling tool: Regional',
      '🔧 Global: Calling tool: Argocd',
      '🔧 Global: Calling tool: Version_Service__Version',
      '✅ Global: Tool Version_Service__Version completed',
      '✅ Global: Tool Argocd completed',
      '✅ Global: Tool Regional completed',
      '✅ Supervisor: Global completed',
    ],
  );
  const open: string[] = [];
  for (const { phase, id } of notices) {
    if (phase === 'start') open.push(id);
    else assert.equal(open.pop(), id);
  }
});

test('each level has its own ids, and exposes none of a lower level [S0-34]', { timeout: 120_000 }, async () => {
  const list = await collect(top(), { text: 'go' });
  const below = await Promise.all(clusters.slice(1).map(({ url }) => newestTask(url)));
  const shown = JSON.stringify(list.map(({ result }) => result));
  const ids = [...below.flatMap(({ id, contextId }) => [id, contextId]), remote.requests.at(-1)!.taskId];
  assert.equal(new Set([...ids, taskIdOf(list)]).size, 6);
  for (const id of ids) assert.equal(shown.includes(id), false);
});

test('a cancel at the top level reaches the agent at the lowest', { timeout: 120_000 }, async () => {
  const list: Frame[] = [];
  for await (const frame of frames(top(), { text: 'slow' })) {
    list.push(frame);
    if (textOf(list, 'streaming_result') === '') continue;
    await rpc(top(), { method: 'tasks/cancel', params: { id: taskIdOf(list) } });
    break;
  }
  await until(() => remote.requests.some(({ method }) => method === 'cancel'));
  for (const { url } of clusters) assert.equal((await newestTask(url)).status.state, 'TASK_STATE_CANCELED');
});

test('a question of the lowest agent reaches the client, and the answer reaches the same tasks [S4-41]', {
  timeout: 120_000,
}, async () => {
  const question = await collect(top(), { text: 'ask' });
  const last = question.at(-1)!.event;
  assert('statusUpdate' in last);
  assert.equal(last.statusUpdate.status.state, 'TASK_STATE_INPUT_REQUIRED');
  assert.equal(last.statusUpdate.status.message?.parts[0]?.text, 'Which one?');
  const before = await Promise.all(clusters.map(({ url }) => newestTask(url)));
  const answered = await collect(top(), { params: messageParams('this one', { taskId: taskIdOf(question) }) });
  assert.equal(foldOf(answered).task?.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(textOf(answered, 'streaming_result'), ANSWER);
  const after = await Promise.all(clusters.map(({ url }) => newestTask(url)));
  assert.deepEqual(
    after.map(({ id, status }) => [id, status.state]),
    before.map(({ id }) => [id, 'TASK_STATE_COMPLETED']),
  );
  assert.equal(remote.requests.at(-1)?.taskId, remote.requests.findLast(({ turn }) => turn === 1)?.taskId);
});

test('hopline trace and the console show the tasks below as a tree, through clusters whose addresses the agents file names', {
  timeout: 120_000,
}, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-tree-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'agents.json');
  const [, middle, bottom] = clusters.map(({ url }) => url) as [string, string, string];
  const addresses = { global: middle, regional: bottom, argocd: remote.url };
  const agents = Object.entries(addresses).map(([name, url]) => ({ name, adapter: 'a2a', url }));
  writeFileSync(file, JSON.stringify({ agents }));
  const taskId = taskIdOf(await collect(top(), { text: 'go' }));
  const ids = [...(await Promise.all([middle, bottom].map(newestTask))).map(({ id }) => id), remote.requests.at(-1)!.taskId];

  /** Agent, task and state of each level. */
  const branchOf = (tasks: readonly TaskBelow[]): unknown[] =>
    tasks.flatMap(({ agent, taskId: id, audited, below }) => [[agent, id, audited?.state], ...branchOf(below)]);
  const expected = [
    ['global', ids[0], 'completed'],
    ['regional', ids[1], 'completed'],
    ['argocd', ids[2], undefined],
  ];
  const traced = await new HoplineCommand(top(), ['trace', taskId, '--agents', file, '--json']).finished;
  assert.deepEqual(branchOf(JSON.parse(traced.out).below), expected, traced.err);
  const { out } = await new HoplineCommand(top(), ['trace', taskId, '--agents', file]).finished;
  const [global, regional, argocd] = ids;
  assert.match(
    out,
    new RegExp(
      `tasks below\\n {2}global: task ${global} at .*completed.*\\n {4}regional: task ${regional} .*completed.*\\n {6}argocd: task ${argocd} `,
    ),
  );
  // Without the addresses of the lower levels, no request is sent there.
  writeFileSync(file, JSON.stringify({ agents: agents.slice(0, 1) }));
  const short = await new HoplineCommand(top(), ['trace', taskId, '--agents', file, '--json']).finished;
  assert.deepEqual(branchOf(JSON.parse(short.out).below), [expected[0], ['regional', ids[1], undefined]]);

  writeFileSync(file, JSON.stringify({ agents }));
  const env = { HOPLINE_CONSOLE_INGRESS_URL: top(), HOPLINE_CONSOLE_AGENTS_FILE: file };
  const web = new ServiceProcess({ service: 'console', instance: 'console-tree', env }, await freePort());
  t.after(() => web.kill());
  await web.start();
  const answer = (await (await fetch(`${web.url}/below/${taskId}`)).json()) as { tasks: TaskBelow[] };
  assert.deepEqual(branchOf(answer.tasks), expected);
  // A task of a cluster below is not a task of this one, so its tree cannot be asked for.
  assert.equal((await fetch(`${web.url}/below/${global}`)).status, 404);
  const info = (await (await fetch(`${web.url}/console.json`)).json()) as { showsBelow: boolean };
  assert.equal(info.showsBelow, true);
});

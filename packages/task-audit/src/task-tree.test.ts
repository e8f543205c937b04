import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AgentTask, type TaskBelow, TREE_LEVELS_MAX, TREE_TASKS_MAX, tasksBelow } from './task-tree.ts';

/** The part of an audit that a tree needs. The agents in `remote` have a task on their own server. */
function auditWith(remote: Record<string, string | undefined>): Required<Pick<AgentTask, 'report'>>['report'] {
  const producers = Object.entries(remote).map(([agent, remoteTaskId]) => ({
    id: agent,
    agent,
    turn: 1,
    attempt: 1,
    tokens: 7,
    ...(remoteTaskId !== undefined && { remoteTaskId }),
  }));
  return { state: 'completed', startedAt: 1_000, events: [{ atMs: 5 }, { atMs: 90 }], producers };
}

const treeOf = (top: object, read: (agent: string, taskId: string) => Promise<AgentTask>) =>
  tasksBelow(top as Parameters<typeof tasksBelow>[0], read);

test('tasks below are read level by level, and an agent without an audit is a leaf with the reason', async () => {
  const audits: Record<string, AgentTask> = {
    'r-1': { url: 'http://r/', report: auditWith({ supervisor: undefined, argocd: 'a-1' }) },
    'a-1': { url: 'http://a/', fault: 'the server does not serve audits' },
  };
  const asked: string[] = [];
  const tree = await treeOf(auditWith({ supervisor: undefined, regional: 'r-1', other: 'o-1' }), async (agent, id) => {
    asked.push(`${agent} ${id}`);
    return audits[id] ?? { fault: 'the agents file has no address for this agent' };
  });
  const at = { turn: 1, attempt: 1 };
  const argocd = {
    agent: 'argocd',
    ...at,
    taskId: 'a-1',
    url: 'http://a/',
    fault: 'the server does not serve audits',
    below: [],
  };
  assert.deepEqual(tree, [
    {
      agent: 'regional',
      ...at,
      taskId: 'r-1',
      url: 'http://r/',
      audited: { state: 'completed', startedAt: 1_000, durationMs: 90, tokens: 14 },
      below: [argocd],
    },
    { agent: 'other', ...at, taskId: 'o-1', fault: 'the agents file has no address for this agent', below: [] },
  ]);
  assert.deepEqual(asked, ['regional r-1', 'argocd a-1', 'other o-1']);
});

test(`a tree has at most ${TREE_LEVELS_MAX} levels, even when a cluster is its own agent`, async () => {
  let reads = 0;
  const [task] = await treeOf(auditWith({ self: 't' }), async () => {
    reads += 1;
    return { report: auditWith({ self: 't' }) };
  });
  let levels = 0;
  for (let one: TaskBelow | undefined = task; one !== undefined; one = one.below[0]) levels += 1;
  assert.deepEqual([levels, reads], [TREE_LEVELS_MAX, TREE_LEVELS_MAX]);
});

for (const count of [TREE_TASKS_MAX, TREE_TASKS_MAX + 1])
  test(`at most ${TREE_TASKS_MAX} of ${count} nested tasks are read`, async () => {
    let reads = 0;
    const many = Object.fromEntries(Array.from({ length: count }, (_, index) => [`agent-${index}`, `t-${index}`]));
    const tree = await treeOf(auditWith(many), async () => {
      reads += 1;
      return { fault: 'absent' };
    });
    assert.deepEqual([tree.length, reads], [TREE_TASKS_MAX, TREE_TASKS_MAX]);
  });

test('an answer that is not an audit is a leaf', async () => {
  for (const report of [
    {},
    { state: 'completed', startedAt: 1, events: [], producers: 'x' },
    { ...auditWith({}), events: [null] },
  ]) {
    const [task] = await treeOf(auditWith({ strange: 's' }), async () => ({ report }));
    assert.equal(task!.fault, 'the cluster did not answer with an audit');
  }
});

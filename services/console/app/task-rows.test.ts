import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isShown, NO_TASKS, newestAt, rowOf, type TaskRow, withNews, withPage, withWaitingShown } from './task-rows.ts';

const row = (id: string, at = '2026-01-01T00:00:00Z', state = 'working'): TaskRow => {
  return { id, at, state, contextId: 'c', question: `question ${id}`, agents: undefined };
};
const idsOf = (rows: readonly TaskRow[]) => rows.map(({ id }) => id);

test('new tasks wait, shown ones are updated in their place, and nothing comes twice', () => {
  let list = withPage(NO_TASKS, [row('b'), row('a')]);
  list = withNews(list, [row('c', '2026-01-01T00:00:02Z'), row('a', '2026-01-01T00:00:01Z', 'completed')]);
  assert.deepEqual([idsOf(list.shown), idsOf(list.waiting)], [['b', 'a'], ['c']]);
  assert.equal(list.shown[1]!.state, 'completed');
  assert.equal(newestAt(list), '2026-01-01T00:00:02Z');
  list = withNews(list, [row('c', '2026-01-01T00:00:03Z', 'failed')]);
  assert.equal(list.waiting[0]!.state, 'failed');
  list = withWaitingShown(list);
  list = withPage(list, [row('c'), row('z')]);
  assert.deepEqual(idsOf(list.shown), ['c', 'b', 'a', 'z']);
});

test('rows without a change stay the same objects, so that they are not drawn again', () => {
  const list = withPage(NO_TASKS, [row('a')]);
  assert.equal(withNews(list, [row('a')]).shown[0], list.shown[0]);
});

test('filters apply together', () => {
  const now = Date.parse('2026-01-01T01:00:00Z');
  const all = { state: '', agent: '', sinceMs: 0, text: '' };
  const one = { ...row('a'), agents: ['guide'] };
  assert.equal(isShown(one, { ...all, state: 'open', agent: 'guide', text: ' QUESTION A' }, now), true);
  assert.equal(isShown(one, { ...all, state: 'completed' }, now), false);
  assert.equal(isShown(one, { ...all, agent: 'files' }, now), false);
  assert.equal(isShown(one, { ...all, sinceMs: 3_600_000 }, now), true);
  assert.equal(isShown(one, { ...all, sinceMs: 3_599_999 }, now), false);
});

test('a row has the first question and the agents of the artifacts', () => {
  const artifacts = ['guide', 'guide', 7].map(sourceAgent => ({ artifactId: 'a', parts: [], metadata: { sourceAgent } }));
  const history = [{ messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'why\u202e?' }] }];
  const { question, agents, state } = rowOf({
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_INPUT_REQUIRED' },
    history,
    artifacts,
  });
  assert.deepEqual([question, agents, state], ['why⟪U+202E⟫?', ['guide'], 'input-required']);
});

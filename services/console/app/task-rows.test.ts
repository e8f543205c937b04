import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isSearch,
  isShown,
  NEWS_MS_MAX,
  NEWS_MS_MIN,
  NO_TASKS,
  newestAt,
  newsSince,
  nextNewsMs,
  rowOf,
  SEARCHED_CHARS_MAX,
  searchedText,
  type TaskRow,
  withNews,
  withPage,
  withWaitingShown,
} from './task-rows.ts';

const row = (id: string, at = '2026-01-01T00:00:00Z', state = 'working'): TaskRow => {
  return { id, at, state, contextId: 'c', question: `question ${id}`, searched: `question ${id}`, agents: undefined };
};
const idsOf = (rows: readonly TaskRow[]) => rows.map(({ id }) => id);

test('new tasks wait, shown tasks are updated in place, and none appears twice', () => {
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

test('unchanged rows stay the same objects, so that they are not rendered again', () => {
  const list = withPage(NO_TASKS, [row('a')]);
  assert.equal(withNews(list, [row('a')]).shown[0], list.shown[0]);
});

test('an answer without news leaves the list unchanged, so that nothing is rendered', () => {
  const list = withPage(NO_TASKS, [row('a'), row('b')]);
  assert.equal(withNews(list, []), list);
  assert.equal(withNews(list, [row('b')]), list);
  assert.notEqual(withNews(list, [{ ...row('b'), state: 'failed' }]), list);
});

test('requests for news become rare while nothing changes, and take at most a tenth of the time of ingress', () => {
  let waitMs = NEWS_MS_MIN;
  for (let asked = 0; asked < 20; asked += 1) waitMs = nextNewsMs(waitMs, false, 5);
  assert.equal(waitMs, NEWS_MS_MAX);
  assert.equal(nextNewsMs(waitMs, true, 5), NEWS_MS_MIN);
  assert.equal(nextNewsMs(NEWS_MS_MIN, true, 400), 4_000);
  assert.equal(nextNewsMs(NEWS_MS_MIN, true, 60_000), NEWS_MS_MAX);
});

test('changes are requested since the newest one, but never since a time in the server’s future', () => {
  const answeredAtMs = Date.parse('2026-01-01T00:00:10Z');
  assert.equal(newsSince('2026-01-01T00:00:02.500Z', answeredAtMs), '2026-01-01T00:00:00.500Z');
  assert.equal(newsSince('2026-01-01T01:00:00Z', answeredAtMs), '2026-01-01T00:00:08.000Z');
  assert.equal(newsSince('', answeredAtMs), '2026-01-01T00:00:08.000Z', 'a task without a time');
});

test('all filters apply together', () => {
  const now = Date.parse('2026-01-01T01:00:00Z');
  const all = { state: '', agent: '', sinceMs: 0, text: '' };
  const one = { ...row('a'), agents: ['guide'] };
  assert.equal(isShown(one, { ...all, state: 'open', agent: 'guide', text: ' QUESTION A' }, now), true);
  assert.equal(isShown(one, { ...all, state: 'completed' }, now), false);
  assert.equal(isShown(one, { ...all, agent: 'files' }, now), false);
  assert.equal(isShown(one, { ...all, sinceMs: 3_600_000 }, now), true);
  assert.equal(isShown(one, { ...all, sinceMs: 3_599_999 }, now), false);
});

test('a search reads every message of the user and the reason of a failure, up to a limit', () => {
  const message = (text: string) => ({ messageId: text, role: 'ROLE_USER' as const, parts: [{ text }] });
  const status = {
    state: 'TASK_STATE_FAILED' as const,
    message: { messageId: 'r', role: 'ROLE_AGENT' as const, parts: [{ text: 'Out of credit' }] },
  };
  const task = { id: 't', contextId: 'c', status, history: [message(`Deploy ${'x'.repeat(300)} to Prod`), message('Yes')] };
  const all = { state: '', agent: '', sinceMs: 0 };
  for (const text of ['deploy', 'to prod', 'yes', ' OUT of credit '])
    assert.equal(isShown(rowOf(task), { ...all, text }, 0), true, text);
  assert.equal(isShown(rowOf(task), { ...all, text: 'no' }, 0), false);
  const { searched } = rowOf({ ...task, history: [message('y'.repeat(SEARCHED_CHARS_MAX))] });
  assert.equal(searched.length, SEARCHED_CHARS_MAX);
});

test('filters that servers lack are searches, and show how far they have searched', () => {
  const none = { state: '', agent: '', text: ' ' };
  assert.deepEqual(
    [none, { ...none, state: 'failed' }, { ...none, state: 'open' }, { ...none, agent: 'a' }, { ...none, text: 'b' }].map(
      isSearch,
    ),
    [false, false, true, true, true],
  );
  assert.equal(searchedText({ found: 1, read: 100, total: 2_208 }), '1 found; searched the newest 100 of 2,208 tasks');
  assert.equal(searchedText({ found: 0, read: 2_208, total: 2_208 }), '0 found in 2,208 tasks');
  assert.equal(searchedText({ found: 1, read: 1, total: 1 }), '1 found in 1 task');
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

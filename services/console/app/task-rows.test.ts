import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  FIRST_READ,
  foundText,
  furtherThan,
  isBefore,
  isShown,
  NEWS_MS_MAX,
  NEWS_MS_MIN,
  NO_TASKS,
  newestAt,
  newsSince,
  nextNewsMs,
  PAGE_TASKS,
  rowOf,
  SEARCHED_PAGES_MAX,
  SEARCHED_TASKS_MAX,
  searchedText,
  searcherOf,
  searchOf,
  type TaskRow,
  WAITING_MAX,
  withNews,
  withPage,
  withWaitingShown,
} from './task-rows.ts';

const row = (id: string, at = '2026-01-01T00:00:00Z', state = 'working'): TaskRow => {
  return { id, at, state, contextId: 'c', question: `question ${id}`, agents: undefined };
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

test('a page that is left open for days keeps a bounded number of waiting tasks, the newest ones', () => {
  let list = withPage(NO_TASKS, [row('a')]);
  for (let day = 1; day <= 3; day += 1) {
    const news = Array.from({ length: WAITING_MAX }, (_, n) => row(`${day}-${n}`, `2026-01-0${day}T00:00:00Z`));
    list = withNews(list, news);
    assert.deepEqual([list.waiting.length, list.waiting.at(-1)!.at], [WAITING_MAX, `2026-01-0${day}T00:00:00Z`]);
  }
  assert.deepEqual(idsOf(list.shown), ['a']);
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

test('changes are requested since the newest known one, but never since a time in the server’s future', () => {
  const answeredAtMs = Date.parse('2026-01-01T00:00:10Z');
  assert.equal(newsSince('2026-01-01T00:00:02.500Z', answeredAtMs), '2026-01-01T00:00:00.500Z');
  assert.equal(newsSince('2026-01-01T01:00:00Z', answeredAtMs), '2026-01-01T00:00:08.000Z');
  assert.equal(newsSince('', answeredAtMs), '2026-01-01T00:00:08.000Z', 'a task without a time');
});

test(`a search stops after ${SEARCHED_PAGES_MAX} pages, ${SEARCHED_TASKS_MAX} tasks or ${PAGE_TASKS} rows, and a button continues it for the same distance`, () => {
  const none = { rows: 0, read: 0, pages: 0 };
  const limits = { pages: SEARCHED_PAGES_MAX, read: SEARCHED_TASKS_MAX, rows: PAGE_TASKS };
  for (const [name, max] of Object.entries(limits)) {
    const stopped = { ...none, [name]: max };
    assert.equal(isBefore({ ...none, [name]: max - 1 }, FIRST_READ), true, name);
    assert.equal(isBefore(stopped, FIRST_READ), false, name);
    const further = furtherThan(stopped);
    assert.equal(isBefore({ ...none, [name]: 2 * max - 1 }, further), true, name);
    assert.equal(isBefore({ ...none, [name]: 2 * max }, further), false, name);
  }
});

test('all filters apply together', () => {
  const now = Date.parse('2026-01-01T01:00:00Z');
  const all = { state: '', sinceMs: 0, text: '' };
  const one = row('a');
  assert.equal(isShown(one, { ...all, state: 'open', text: ' A' }, now), true);
  assert.equal(isShown(one, { ...all, state: 'completed' }, now), false);
  assert.equal(isShown(one, { ...all, sinceMs: 3_600_000 }, now), true);
  assert.equal(isShown(one, { ...all, sinceMs: 3_599_999 }, now), false);
  assert.equal(isShown(one, { ...all, text: 'b' }, now), false);
});

test('the server searches for words, and the page searches for parts of ids', () => {
  assert.deepEqual(searchOf(' roll back '), { server: 'roll back', page: '' });
  assert.deepEqual(searchOf('01a22454-941a'), { server: '', page: '01a22454-941a' });
  assert.deepEqual(searchOf('  '), { server: '', page: '' });
  assert.equal(searchOf('x'.repeat(300)).server.length, 256);
});

test('a row has the reason of a failure, the time that the task took, and the tokens that the agent reported', () => {
  const message = { messageId: 'r', role: 'ROLE_AGENT' as const, parts: [{ text: 'Out of credit' }] };
  const at = Date.parse('2026-01-01T00:00:10.000Z');
  const hex = (at - 1_500).toString(16).padStart(12, '0');
  const id = `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
  const status = { state: 'TASK_STATE_FAILED' as const, message, timestamp: new Date(at).toISOString() };
  const task = { id, contextId: 'c', status, metadata: { usage: { outputTokens: 12 } } };
  const { reason, durationMs, tokens } = rowOf(task);
  assert.deepEqual([reason, durationMs, tokens], ['Out of credit', 1_500, 12]);
  const open = rowOf({ ...task, id: 'chosen-by-a-client', status: { ...status, state: 'TASK_STATE_WORKING' }, metadata: {} });
  assert.deepEqual([open.reason, open.durationMs, open.tokens], ['', undefined, undefined]);
  assert.equal(rowOf({ ...task, id: 'chosen-by-a-client' }).durationMs, undefined);
  const asked = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'why?' }], metadata: { agent: 'guide' } };
  assert.deepEqual(rowOf({ ...task, history: [asked] }).agents, ['guide']);
  assert.deepEqual(rowOf({ ...task, history: [asked] }, 'files').agents, ['guide', 'files'], 'filtered by files');
  assert.deepEqual(rowOf({ ...task, history: [asked] }, 'guide').agents, ['guide']);
  assert.equal(rowOf(task).agents, undefined);
});

test('the server searches words, an agent and a duration, the page searches the rest, and both show their progress', () => {
  const none = { state: '', agent: '', longer: '', text: ' ' };
  assert.deepEqual(
    [
      none,
      { ...none, state: 'failed' },
      { ...none, state: 'open' },
      { ...none, text: '01a22454' },
      { ...none, state: 'open', agent: 'a' },
      { ...none, text: 'b' },
      { ...none, longer: '1s' },
    ].map(searcherOf),
    [undefined, undefined, 'page', 'page', 'server', 'server', 'server'],
  );
  assert.equal(searchedText({ found: 1, read: 100, total: 2_208 }), '1 found; searched the newest 100 of 2,208 tasks');
  assert.equal(searchedText({ found: 0, read: 2_208, total: 2_208 }), '0 found in 2,208 tasks');
  assert.equal(searchedText({ found: 1, read: 1, total: 1 }), '1 found in 1 task');
  assert.equal(foundText(1, true, false), '1 found in all your tasks');
  assert.equal(foundText(1_000, false, true), '1,000 found so far');
  assert.equal(foundText(0, false, false), '0 found; the search stopped before your oldest tasks');
});

test('a row has the first question', () => {
  const history = [{ messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'why\u202e?' }] }];
  const { question, state } = rowOf({
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_INPUT_REQUIRED' },
    history,
  });
  assert.deepEqual([question, state], ['why⟪U+202E⟫?', 'input-required']);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agentPath, comparePath, routeOf, taskPath, titleOf } from './routes.ts';

test('each page has its own path, and ids with any characters survive a round trip', () => {
  assert.deepEqual(routeOf('/'), { page: 'tasks' });
  assert.deepEqual(routeOf('/cluster'), { page: 'cluster' });
  for (const id of ['a', 'ä/b?c#d', '%']) {
    assert.deepEqual(routeOf(taskPath(id)), { page: 'task', id });
    assert.deepEqual(routeOf(agentPath(id)), { page: 'agent', name: id });
    assert.deepEqual(routeOf(comparePath(id, 'x')), { page: 'compare', a: id, b: 'x' });
    assert.deepEqual(routeOf(comparePath(id, '')), { page: 'compare', a: id, b: '' });
  }
  assert.deepEqual(routeOf('/compare'), { page: 'compare', a: '', b: '' });
});

test('an unknown path is the list', () => {
  for (const path of [
    '/tasks',
    '/tasks/a/b',
    '/cluster/x',
    '/agents',
    '/agents/',
    '/agents/a/b',
    '/compare/a/b/c',
    '/tasks/%',
    '/nowhere',
  ])
    assert.deepEqual(routeOf(path), { page: 'tasks' }, path);
});

test('each page has its own title, and an id in it cannot hide characters', () => {
  assert.equal(titleOf(routeOf('/')), 'Tasks · Hopline');
  assert.equal(titleOf(routeOf(taskPath('a\u202eb'))), 'Task a⟪U+202E⟫b · Hopline');
  assert.equal(titleOf(routeOf(agentPath('a\u202eb'))), 'Agent a⟪U+202E⟫b · Hopline');
});

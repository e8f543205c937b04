import assert from 'node:assert/strict';
import { test } from 'node:test';
import { credentialsOf, kindOfRequest, requestHeaders, responseHeaders } from './api-requests.ts';

test('reads and writes of tasks are passed on, and nothing else', () => {
  for (const path of [
    '/tasks',
    '/tasks/a-1',
    '/tasks/a:subscribe',
    '/v1/tasks/a:subscribe',
    '/tasks/a/audit',
    '/tasks/a/audit/1.2',
    '/tasks/a/deliveries',
    '/tasks/a/export',
    '/agents',
  ])
    assert.equal(kindOfRequest('GET', path), 'read', path);
  for (const path of ['/message:send', '/message:stream', '/tasks/a:cancel'])
    assert.equal(kindOfRequest('POST', path), 'write', path);
  const refused = [
    '/',
    '',
    '/metrics',
    '/livez',
    '/tasks/',
    '/tasks/a/b',
    '/tasks/a/pushNotificationConfigs',
    '/tasks/a:cancel',
    '/x/../metrics',
  ];
  for (const path of refused) assert.equal(kindOfRequest('GET', path), undefined, path);
  for (const path of ['/tasks', '/', '/tasks/a:subscribe']) assert.equal(kindOfRequest('POST', path), undefined, path);
  assert.equal(kindOfRequest('DELETE', '/tasks/a'), undefined);
});

test('a path that a proxy could resolve to another one is refused', () => {
  for (const path of ['/tasks/..', '/tasks/.', '/tasks/%2e%2e', '/tasks/.%2E/audit', '/tasks/%2e/audit'])
    assert.equal(kindOfRequest('GET', path), undefined, path);
});

test('only headers for credentials and A2A are passed on', () => {
  const received = {
    authorization: 'Bearer a',
    'x-key': 'k',
    cookie: 'session=1',
    host: 'h',
    connection: 'upgrade',
    'x-forwarded-for': '1',
    'a2a-version': '1.0',
    'last-event-id': '1.2',
    'accept-encoding': 'gzip',
  };
  assert.deepEqual(Object.keys(requestHeaders(received, 'x-key')).sort(), [
    'a2a-version',
    'authorization',
    'last-event-id',
    'x-key',
  ]);
  assert.deepEqual(credentialsOf(received, 'x-key'), { authorization: 'Bearer a', 'x-key': 'k' });
  assert.deepEqual(responseHeaders({ 'set-cookie': ['a=1'], location: '/', 'content-type': 'text/html', 'retry-after': '1' }), {
    'content-type': 'text/html',
    'retry-after': '1',
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { curlOf } from './curl-command.ts';

test('the command reads the stream of a task through the console, and asks the shell for the credentials', () => {
  const read = "curl -N -H 'a2a-version: 1.0' -H 'accept: text/event-stream' -H 'last-event-id: 0.0'";
  assert.equal(curlOf('http://h:8090', '/api/tasks/t', false), `${read} 'http://h:8090/api/tasks/t:subscribe'`);
  assert.equal(
    curlOf('http://h:8090', '/api/tasks/t', true),
    `${read} -H "authorization: Bearer $TOKEN" 'http://h:8090/api/tasks/t:subscribe'`,
  );
});

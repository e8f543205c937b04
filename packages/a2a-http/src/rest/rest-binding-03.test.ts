import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { A2A_ERRORS, type A2AErrorCode, type JsonObject } from '@hopline/a2a';
import fc from 'fast-check';
import { openRig, type Rig } from '../http-server.test-kit.ts';
import { type RestAnswer, type RestRequest, rest, restFrames, restResponse } from '../rest.test-kit.ts';
import { HTTP_METHODS, REST_ROUTES_03 } from './routes.ts';

/** Clients of 0.3 send no version. */
const UNVERSIONED = { 'a2a-version': '', 'content-type': 'application/json', accept: 'application/json' };
const v1 = (rig: Rig, line: string, request: RestRequest = {}) =>
  rest(rig, line, { ...request, headers: { ...UNVERSIONED, ...request.headers } });

const message = (text: string, more: JsonObject = {}): JsonObject => ({
  messageId: crypto.randomUUID(),
  role: 'ROLE_USER',
  content: [{ text }],
  ...more,
});

async function openInputRequired(t: TestContext): Promise<{ rig: Rig; id: string }> {
  const rig = await openRig(t, { push: true });
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const { body } = await v1(rig, 'POST /v1/message:send', { body: { message: message('x') } });
  return { rig, id: body.task.id };
}

function assertError({ status, type, body }: RestAnswer, code: A2AErrorCode, about: string, httpStatus?: number): void {
  const row = A2A_ERRORS[code];
  assert.equal(status, httpStatus ?? row.http, about);
  assert.equal(type, 'application/json', about);
  assert.deepEqual([body.code, body.data.reason], [row.rpc, code], about);
  assert(body.message.startsWith(row.text), about);
}

test('sends, gets and cancels in ProtoJSON, at both addresses', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['Here', ' is']);
  for (const base of ['', '/a2a']) {
    const sent = await v1(rig, `POST ${base}/v1/message:send`, {
      body: { message: message('x'), configuration: { blocking: true } },
    });
    assert.deepEqual([sent.status, sent.type], [200, 'application/json']);
    const { task } = sent.body;
    assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
    assert.deepEqual(task.history[0].content, [{ text: 'x' }]);
    assert.equal(task.artifacts[0].parts.map((part: { text: string }) => part.text).join(''), 'Here is');
    assert.doesNotMatch(JSON.stringify(task), /"kind"/);
    assert.deepEqual((await v1(rig, `GET ${base}/v1/tasks/${task.id}`)).body, task);
    assert.equal('history' in (await v1(rig, `GET ${base}/v1/tasks/${task.id}?historyLength=0`)).body, false);
    assertError(await v1(rig, `POST ${base}/v1/tasks/${task.id}:cancel`), 'TASK_NOT_CANCELABLE', 'ended');
  }
  rig.relay.onClient = () => {};
  const polled = await v1(rig, 'POST /v1/message%3Asend', { body: { message: message('x'), configuration: {} } });
  assert.equal(polled.body.task.status.state, 'TASK_STATE_SUBMITTED', 'a configuration without blocking does not wait');
  const { id } = polled.body.task;
  rig.relay.onClient = taskId => {
    if (rig.relay.aggregate(taskId).state !== 'TASK_STATE_CANCELED') void rig.relay.end(taskId);
  };
  const canceled = await v1(rig, `POST /v1/tasks/${id}:cancel`, { body: { name: `tasks/${id}` } });
  assert.equal(canceled.body.status.state, 'TASK_STATE_CANCELLED');
});

test('streams bare frames, and subscribes by POST and by GET', async t => {
  const { rig, id } = await openInputRequired(t);
  for (const method of ['POST', 'GET']) {
    const response = await restResponse(rig, `${method} /v1/tasks/${id}:subscribe`, { headers: UNVERSIONED });
    const [frame] = await restFrames(response, 1);
    assert.equal((frame!.json.task as { id: string }).id, id);
    assert.match(frame!.id ?? '', /^\d+\.\d+$/);
  }
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['a', 'b']);
  const body = { message: message('y', { taskId: id }) };
  const frames = await restFrames(await restResponse(rig, 'POST /v1/message:stream', { headers: UNVERSIONED, body }));
  assert.deepEqual(
    frames.map(({ json }) => Object.keys(json)[0]),
    ['task', 'artifactUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate'],
  );
  assert.equal((frames.at(-1)!.json.statusUpdate as JsonObject).final, true);
});

test('a drained stream ends with an error that clients of 0.3 read', async t => {
  const { rig, id } = await openInputRequired(t);
  const response = await restResponse(rig, `POST /v1/tasks/${id}:subscribe`, { headers: UNVERSIONED });
  const [frames] = await Promise.all([restFrames(response), rig.close()]);
  const last = frames.at(-1)!;
  assert.deepEqual([last.event, last.json.code], ['error', -32603]);
});

test('push configurations are set as both SDKs do, read, listed and deleted [S3-22 C-21]', async t => {
  const { rig, id } = await openInputRequired(t);
  const path = `/v1/tasks/${id}/pushNotificationConfigs`;
  const config = { url: 'https://h.example/', token: 'SECRET', authentication: { schemes: ['Bearer'], credentials: 'SECRET' } };
  const shown = (name: string) => ({
    name: `tasks/${id}/pushNotificationConfigs/${name}`,
    pushNotificationConfig: { id: name, url: 'https://h.example/', authentication: { schemes: ['Bearer'] } },
  });
  const javascript = { name: `tasks/${id}/pushNotificationConfigs/`, pushNotificationConfig: config };
  assert.deepEqual((await v1(rig, `POST ${path}`, { body: javascript })).body, shown(id));
  const python = { parent: `tasks/${id}`, configId: 'c', config: { name: 'x', pushNotificationConfig: config } };
  const set = await v1(rig, `POST ${path}`, { body: python });
  assert.deepEqual([set.status, set.body], [200, shown('c')]);
  assert.deepEqual((await v1(rig, `GET ${path}/c`)).body, shown('c'));
  const { body } = await v1(rig, `GET ${path}`);
  assert.deepEqual(body, { configs: [shown(id), shown('c')].sort((a, b) => (a.name < b.name ? -1 : 1)), nextPageToken: '' });
  for (const _ of [1, 2]) assert.deepEqual((await v1(rig, `DELETE ${path}/c`)).body, {});
  assertError(await v1(rig, `GET ${path}/c`), 'TASK_NOT_FOUND', 'gone');
  assertError(await v1(rig, 'GET /v1/tasks/x/pushNotificationConfigs'), 'TASK_NOT_FOUND', 'unknown');
  const [stored] = await rig.log.pushConfigs.under(id);
  assert.deepEqual([stored?.value.dialect, stored?.value.token], ['0.3', 'SECRET']);
});

test('lists the newest tasks without pages', async t => {
  const { rig, id } = await openInputRequired(t);
  await v1(rig, 'POST /v1/message:send', { body: { message: message('y') } });
  const { status, body } = await v1(rig, 'GET /v1/tasks');
  assert.deepEqual([status, body.length, body[1].id, body[1].status.state], [200, 2, id, 'TASK_STATE_INPUT_REQUIRED']);
});

test('each mistake gets its HTTP status and the bare error object of JSON-RPC', async t => {
  const { rig } = await openInputRequired(t);
  const cases: [string, A2AErrorCode, RestRequest?, number?][] = [
    ['GET /v1/tasks/unknown', 'TASK_NOT_FOUND'],
    ['POST /v1/tasks/unknown:subscribe', 'TASK_NOT_FOUND'],
    ['POST /v1/tasks/unknown:fly', 'METHOD_NOT_FOUND'],
    ['POST /v1/message:send', 'INVALID_PARAMS', { body: {} }],
    ['POST /v1/message:send', 'INVALID_PARAMS', { body: { message: { role: 'ROLE_USER', content: [] } } }],
    ['POST /v1/message:send', 'PARSE_ERROR', { raw: '{' }],
    ['POST /v1/message:send', 'CONTENT_TYPE_NOT_SUPPORTED', { raw: 'x', headers: { 'content-type': 'text/plain' } }],
    ['GET /v1/card', 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'],
    ['GET /v1/tasks/x', 'VERSION_NOT_SUPPORTED', { headers: { 'a2a-version': '2.0' } }],
    ['GET /v1/tasks/x', 'VERSION_NOT_SUPPORTED', { headers: { 'a2a-version': '0.1' } }],
  ];
  for (const [line, code, request, status] of cases) assertError(await v1(rig, line, request), code, line, status);
  const typed = await Promise.all(['GET /v1/tasks/unknown', 'POST /v1/tasks/unknown:fly'].map(line => v1(rig, line)));
  assert.deepEqual(
    typed.map(({ body }) => body.type),
    ['TaskNotFoundError', 'MethodNotFoundError'],
    'Python 1.x distinguishes them by it',
  );
  assert.deepEqual(
    typed.map(({ body }) => [body.error, body.data.error]),
    [
      [undefined, 'io.a2a.spec.TaskNotFoundError'],
      [undefined, 'io.a2a.spec.MethodNotFoundError'],
    ],
    'so Java 0.3 does, and Go finds no error object of 1.0',
  );
  assert.equal((await v1(rig, 'GET /v1/tasks/x', { headers: { 'a2a-version': '0.3' } })).body.code, -32001);
});

test('every path supports its methods, and 405 lists them', async t => {
  const rig = await openRig(t);
  for (const [path, route] of Object.entries(REST_ROUTES_03)) {
    const address = path.replaceAll(/\{\w+\}/g, 'x');
    for (const method of HTTP_METHODS) {
      const answer = await v1(rig, `${method} ${address}`);
      if (method in route) assert.notEqual(answer.status, 405, `${method} ${path}`);
      else {
        assertError(answer, 'METHOD_NOT_FOUND', `${method} ${path}`, 405);
        assert.equal(answer.headers.get('allow'), Object.keys(route).join(', '));
      }
    }
  }
});

test('/v1 is a tenant when the request is 1.0', async t => {
  const { rig, id } = await openInputRequired(t);
  for (const line of [`GET /v1/tasks/${id}`, `GET /v1/tasks`, 'POST /v1/message:send', 'GET /v1/extendedAgentCard']) {
    const { body } = await rest(rig, line, line.startsWith('POST') ? { body: { message: { role: 'ROLE_USER' } } } : {});
    assert.equal(body.error.details[0].reason, 'TASK_NOT_FOUND', line);
  }
  assert.equal((await rest(rig, 'GET /v1/card')).body.error.details[0].reason, 'METHOD_NOT_FOUND');
});

test('any request gets JSON and never a 500, and nothing changes [S4-33]', async t => {
  const { rig, id } = await openInputRequired(t);
  const before = await v1(rig, 'GET /v1/tasks');
  const part = fc.oneof(
    fc.constantFrom('tasks', 'message:send', 'message:stream', 'pushNotificationConfigs', 'card', `${id}:fly`, ''),
    fc.string().map(encodeURIComponent),
    fc.constantFrom('%', '%zz', '%00', '..', '%ff'),
  );
  const member = fc.constantFrom('message', 'content', 'parts', 'config', 'configuration', 'pushNotificationConfig', 'metadata');
  const body = fc.oneof(
    fc.json(),
    fc.string(),
    fc.dictionary(member, fc.jsonValue()).map(value => JSON.stringify(value)),
  );
  const method = fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'OPTIONS');
  await fc.assert(
    fc.asyncProperty(method, fc.array(part, { maxLength: 4 }), body, async (verb, parts, sent) => {
      const path = `/v1/${parts.join('/')}`;
      const answer = await v1(rig, `${verb} ${path}`, verb === 'GET' ? {} : { raw: sent });
      assert(answer.status < 500, `${verb} ${path} ${answer.status}`);
      assert.doesNotMatch(JSON.stringify(answer.body), /node_modules|\.ts:|at async/);
    }),
    { numRuns: 200 },
  );
  assert.deepEqual((await v1(rig, 'GET /v1/tasks')).body, before.body);
  assert.deepEqual(rig.lines, []);
});

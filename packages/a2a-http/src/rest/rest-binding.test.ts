import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2A_ERRORS, type A2AErrorCode, DIALECTS } from '@hopline/a2a';
import fc from 'fast-check';
import { call, openRig, type Rig, shape, userMessage } from '../http-server.test-kit.ts';
import { type RestAnswer, type RestFrame, type RestRequest, rest, restFrames, restResponse } from '../rest.test-kit.ts';

const REASON = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', domain: 'a2a-protocol.org' };

function assertError(answer: RestAnswer, code: A2AErrorCode, about: string, status: number = A2A_ERRORS[code].http): void {
  const { error } = answer.body;
  assert.deepEqual([answer.status, error?.details?.[0]?.reason], [status, code], about);
  assert.deepEqual([error.code, error.status, answer.type], [status, A2A_ERRORS[code].grpc, 'application/a2a+json'], about);
  assert.equal(error.message.startsWith(A2A_ERRORS[code].text), true, about);
  const { '@type': type, domain } = error.details[0];
  assert.deepEqual({ '@type': type, domain }, REASON, about);
  assert.deepEqual(Object.keys(answer.body), ['error'], about);
}

const shapes = (frames: RestFrame[]) =>
  shape(frames.map(frame => ({ ...frame, rpc: {} as never, decoded: DIALECTS['1.0'].decodeEvent(frame.json) })));

async function interrupted(rig: Rig): Promise<string> {
  rig.relay.onClient = async taskId => {
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.end(taskId, 'INPUT_REQUIRED');
  };
  const sent = await rest(rig, 'POST /message:send', { body: { message: userMessage('x') } });
  return sent.body.task.id;
}

test('send, get and stream return bare objects with one member, the same as over JSON-RPC [S1-11 S1-22]', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['Here', ' is']);
  for (const base of ['', '/a2a']) {
    const sent = await rest(rig, `POST ${base}/message:send`, { body: { message: userMessage('x') } });
    assert.deepEqual([sent.status, sent.type, Object.keys(sent.body)], [200, 'application/a2a+json', ['task']]);
    const got = await rest(rig, `GET ${base}/tasks/${sent.body.task.id}`);
    assert.deepEqual(got.body, (await call(rig, 'get', { id: sent.body.task.id })).result);
    assert.deepEqual(got.body.artifacts[0].parts, [{ text: 'Here is' }]);
    const response = await restResponse(rig, `POST ${base}/message:stream`, { body: { message: userMessage('x') } });
    assert.match(response.headers.get('content-type')!, /^text\/event-stream/);
    const frames = await restFrames(response);
    assert.deepEqual(shapes(frames), ['task submitted', 'working', '=Here', '+ is', '+.', 'completed']);
    for (const { json, id } of frames) assert.deepEqual([Object.keys(json).length, /^\d+\.\d+$/.test(id!)], [1, true]);
  }
});

test('the colon before a verb may be percent-encoded in every verb', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  for (const colon of ['%3A', '%3a']) {
    const body = { message: userMessage('x') };
    const sent = await rest(rig, `POST /message${colon}send?note=a%3Ab`, { body });
    assert.equal(sent.status, 200, colon);
    assert.equal((await rest(rig, `POST /a2a/message${colon}send`, { body })).status, 200);
    const streamed = await restResponse(rig, `POST /message${colon}stream`, { body });
    assert.equal(shapes(await restFrames(streamed)).at(-1), 'completed');
    const path = `/tasks/${sent.body.task.id}${colon}`;
    assertError(await rest(rig, `POST ${path}cancel`), 'TASK_NOT_CANCELABLE', colon);
    assertError(await rest(rig, `GET ${path}subscribe`), 'UNSUPPORTED_OPERATION', colon);
  }
  // An encoded percent sign is part of the name.
  assert.equal((await rest(rig, 'POST /message%253Asend', { body: { message: userMessage('x') } })).status, 404);
});

test('historyLength and other query parameters work under both of their names, and configuration works in the body', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const now = await rest(rig, 'POST /message:send', {
    body: { message: userMessage('x'), configuration: { returnImmediately: true, historyLength: 0 } },
  });
  assert.equal('history' in now.body.task, false);
  const { id } = now.body.task;
  for (const query of ['historyLength=0', 'history_length=0']) {
    assert.equal('history' in (await rest(rig, `GET /tasks/${id}?${query}`)).body, false);
  }
  for (const query of ['', '?historyLength=', '?historyLength=1']) {
    assert.equal((await rest(rig, `GET /tasks/${id}${query}`)).body.history.length, 1);
  }
});

test('a message of only white space is refused with 400 [S4-32]', async t => {
  const rig = await openRig(t);
  for (const path of ['message:send', 'message:stream'])
    assertError(await rest(rig, `POST /${path}`, { body: { message: userMessage(' \n ') } }), 'INVALID_PARAMS', path);
});

test('both content types are accepted, and the response has the one that the client accepts', async t => {
  const rig = await openRig(t);
  const id = await interrupted(rig);
  const types: [accept: string, type: string][] = [
    ['*/*', 'application/a2a+json'],
    ['application/json', 'application/json'],
    ['application/a2a+json, application/json', 'application/a2a+json'],
    // SDKs accept these types when they read a stream. Its error is still JSON.
    ['text/event-stream', 'application/json'],
    ['text/event-stream, application/a2a+json', 'application/a2a+json'],
  ];
  for (const [accept, type] of types) assert.equal((await rest(rig, `GET /tasks/${id}`, { headers: { accept } })).type, type);
  for (const type of ['application/json', 'application/a2a+json; charset=utf-8']) {
    const request = { headers: { 'content-type': type }, raw: '{"metadata":{"a":1}}' };
    assert.equal((await rest(rig, `POST /tasks/${await interrupted(rig)}:cancel`, request)).status, 200);
  }
});

test('cancel works with and without a body; an ended task is not cancelable [S3-26 S4-35]', async t => {
  const rig = await openRig(t);
  const requests: RestRequest[] = [
    {},
    { raw: '' },
    { raw: 'null' },
    { body: {} },
    { headers: { 'content-type': 'application/json' } },
  ];
  for (const request of requests) {
    const id = await interrupted(rig);
    const canceled = await rest(rig, `POST /tasks/${id}:cancel`, request);
    assert.deepEqual([canceled.status, canceled.body.status?.state], [200, 'TASK_STATE_CANCELED'], JSON.stringify(request));
    assertError(await rest(rig, `POST /tasks/${id}:cancel`, request), 'TASK_NOT_CANCELABLE', 'again');
  }
});

test('an EventSource that has every event of an ended task does not connect again, in 1.0 and 0.3', async t => {
  const rig = await openRig(t);
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const sent = await rest(rig, 'POST /message:send', { body: { message: userMessage('x') } });
  const { id } = sent.body.task;
  const events = await restFrames(await restResponse(rig, `GET /tasks/${id}:subscribe?cursor=0.0`));
  const [last, before] = [events.at(-1)!.id!, events.at(-2)!.id!];
  const accept = 'text/event-stream';
  for (const path of [`/tasks/${id}:subscribe?A2A-Version=1.0&cursor=0.0`, `/v1/tasks/${id}:subscribe?cursor=0.0`]) {
    const open = (cursor: string, more = {}) =>
      fetch(`${rig.url}${path}`, { headers: { accept, 'last-event-id': cursor, ...more } });
    const end = await open(last);
    assert.deepEqual([end.status, await end.text(), end.headers.get('cache-control')], [204, '', 'no-store'], path);
    assert.equal((await restFrames(await open(before))).length, 1, path);
    // Other clients get the empty stream that the resume extension promises.
    const other = await open(last, { accept: 'text/event-stream, application/json' });
    assert.deepEqual([other.status, await other.text()], [200, ': ok\n\n'], path);
  }
  const open = await interrupted(rig);
  const waiting = await fetch(`${rig.url}/v1/tasks/${open}:subscribe`, { headers: { accept, 'last-event-id': '3.9' } });
  assert.equal(waiting.status, 200, 'events may follow');
  await waiting.body!.cancel();
});

test('subscribe by GET and by POST: the task, then what follows; with a cursor exactly what follows it [S3-31]', async t => {
  const rig = await openRig(t);
  const other = await rig.another();
  const id = await interrupted(rig);
  const streams = [
    await restResponse(rig, `GET /tasks/${id}:subscribe`),
    await restResponse(other, `POST /tasks/${id}:subscribe`, { body: {} }),
    await restResponse(other, `POST /a2a/tasks/${id}:subscribe?cursor=2.1`),
    await restResponse(rig, `GET /tasks/${id}%3Asubscribe`, { headers: { 'last-event-id': '0.0' } }),
  ];
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  await rest(rig, 'POST /message:send', { body: { message: userMessage('y', { taskId: id }) } });
  const seen = await Promise.all(streams.map(async stream => shapes(await restFrames(stream))));
  const after = ['working', '=ok', '+.', 'completed'];
  assert.deepEqual(seen[0]!.slice(0, 1), ['task input_required']);
  assert.deepEqual(seen[0]!.slice(-4), after);
  assert.deepEqual(seen[1], seen[0]);
  assert.deepEqual(seen[2], ['input_required', ...after]);
  assert.deepEqual(seen[3], ['task submitted', 'working', 'input_required', ...after]);
  assertError(await rest(rig, `GET /tasks/${id}:subscribe`), 'UNSUPPORTED_OPERATION', 'S4-37 ended');
  const replay = shapes(await restFrames(await restResponse(rig, `GET /tasks/${id}:subscribe?cursor=0.0`)));
  assert.deepEqual(replay, seen[3]);
  assertError(await rest(rig, `GET /tasks/${id}:subscribe?cursor=nonsense`), 'INVALID_PARAMS', 'a bad cursor');
});

test('each mistake has its HTTP status and its reason [C-12 S4-29 S4-32 S4-34 S4-36 S4-37 S4-38]', async t => {
  const rig = await openRig(t, { limits: { bodyBytesMax: 2_000 } });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  const message = userMessage('x');
  const ended = (await rest(rig, 'POST /message:send', { body: { message } })).body.task;
  const cases: [line: string, code: A2AErrorCode, request?: RestRequest, status?: number][] = [
    ['POST /message:send', 'PARSE_ERROR', { raw: '{' }],
    ['POST /message:send', 'PARSE_ERROR', { raw: Buffer.from([0x22, 0xff, 0x22]) }],
    ['POST /tasks/x:cancel', 'PARSE_ERROR', { raw: '}' }],
    ['POST /message:send', 'INVALID_PARAMS', { body: [] }],
    ['POST /message:send', 'INVALID_PARAMS'],
    ['POST /message:send', 'INVALID_PARAMS', { raw: '"x"' }],
    ['POST /message:stream', 'INVALID_PARAMS', { body: { message: { ...message, parts: [] } } }],
    ['POST /message:send', 'INVALID_PARAMS', { raw: `{"message":${'['.repeat(100)}${']'.repeat(100)}}` }],
    ['GET /tasks/x?historyLength=-1', 'INVALID_PARAMS'],
    ['GET /tasks/x?historyLength=1&historyLength=2', 'INVALID_PARAMS'],
    ['GET /tasks/x?historyLength=ten', 'INVALID_PARAMS'],
    ['GET /tasks?pageSize=0', 'INVALID_PARAMS'],
    ['GET /tasks/%zz', 'INVALID_PARAMS'],
    ['GET /tasks/unknown', 'TASK_NOT_FOUND'],
    ['GET /tasks/a.b.%3E', 'TASK_NOT_FOUND'],
    [`GET /tasks/${'x'.repeat(256)}`, 'TASK_NOT_FOUND'],
    ['POST /tasks/unknown:cancel', 'TASK_NOT_FOUND', { body: { id: ended.id } }],
    ['GET /tasks/unknown:subscribe', 'TASK_NOT_FOUND'],
    ['POST /message:send', 'TASK_NOT_FOUND', { body: { message: { ...message, taskId: 'unknown' } } }],
    ['POST /message:send', 'UNSUPPORTED_OPERATION', { body: { message: userMessage('y', { taskId: ended.id }) } }],
    ['GET /extendedAgentCard', 'UNSUPPORTED_OPERATION'],
    ['GET /tasks/x/pushNotificationConfigs', 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
    ['POST /tasks/x/pushNotificationConfigs', 'PUSH_NOTIFICATION_NOT_SUPPORTED', { body: { url: 'http://h/' } }],
    ['GET /tasks/x/pushNotificationConfigs/c', 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
    ['DELETE /tasks/x/pushNotificationConfigs/c', 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
    ['POST /message:send', 'CONTENT_TYPE_NOT_SUPPORTED', { raw: '<a/>', headers: { 'content-type': 'text/xml' } }],
    ['POST /message:send', 'REQUEST_TOO_LARGE', { raw: `"${'x'.repeat(2_000)}"` }],
    ['GET /tasks/x:fly', 'METHOD_NOT_FOUND'],
    ['PUT /tasks/x', 'METHOD_NOT_FOUND', {}, 405],
    ['GET /tasks/x:cancel', 'METHOD_NOT_FOUND', {}, 405],
    ['GET /message:send', 'METHOD_NOT_FOUND', {}, 405],
    ['DELETE /tasks', 'METHOD_NOT_FOUND', {}, 405],
  ];
  for (const [line, code, request, status] of cases) assertError(await rest(rig, line, request), code, line, status);
  assert.equal((await restResponse(rig, 'HEAD /tasks/x:subscribe')).status, 405);
  assert.equal((await rest(rig, 'PUT /tasks/x:subscribe')).headers.get('allow'), 'GET, POST');
  assert.deepEqual(rig.lines, []);
});

test('these paths exist only in 1.0: a request without a version is a 0.3 request [C-6 S4-37]', async t => {
  const rig = await openRig(t);
  for (const version of ['', '0.3', '2.0', 'x', '1.1']) {
    assertError(await rest(rig, 'GET /tasks/x', { headers: { 'a2a-version': version } }), 'VERSION_NOT_SUPPORTED', version);
  }
  assertError(await rest(rig, 'GET /tasks/x', { headers: { 'a2a-version': '1.0.9' } }), 'TASK_NOT_FOUND', 'patch');
  const byQuery = await rest(rig, 'GET /tasks/x?A2A-Version=1.0', { headers: { 'a2a-version': '' } });
  assertError(byQuery, 'TASK_NOT_FOUND', 'query');
});

test('an unlisted tenant is not found, in any binding and wherever the request names it', async t => {
  const rig = await openRig(t);
  const id = await interrupted(rig);
  const lines = [
    'POST /acme/message:send',
    'POST /acme/message:stream',
    'GET /acme/tasks',
    `GET /acme/tasks/${id}`,
    `POST /acme/tasks/${id}:cancel`,
    `GET /acme/tasks/${id}:subscribe`,
    `POST /a2a/acme/tasks/${id}:subscribe`,
    `GET /tasks/${id}?tenant=acme`,
  ];
  for (const line of lines) {
    const body = line.includes('message') ? { message: userMessage('x') } : undefined;
    assertError(await rest(rig, line, body && { body }), 'TASK_NOT_FOUND', line);
  }
  const inBody = { message: userMessage('x'), tenant: 'acme' };
  assertError(await rest(rig, 'POST /message:send', { body: inBody }), 'TASK_NOT_FOUND', 'in the body');
  assert.equal((await call(rig, 'send', inBody)).error?.code, -32001);
  assert.equal((await rest(rig, `GET /tasks/${id}?tenant=`)).status, 200);
  assert.equal((await rest(rig, 'GET /tasks')).body.totalSize, 1);
});

test('a server fault is 500 without details; UNAVAILABLE has a retry delay [S4-33]', async t => {
  const rig = await openRig(t);
  rig.log.facts.last = async () => {
    throw new Error('secret at /srv/db');
  };
  const fault = await rest(rig, 'GET /tasks/x');
  assertError(fault, 'INTERNAL_ERROR', 'fault');
  assert.doesNotMatch(JSON.stringify(fault.body), /secret|srv/);
  assert.equal((rig.lines[0]!.fields.err as Error).message, 'secret at /srv/db');
  rig.log.faults.refusals = 1;
  const refused = await rest(rig, 'POST /message:send', { body: { message: userMessage('x') } });
  assertError(refused, 'UNAVAILABLE', 'refused');
  assert.equal(refused.headers.get('retry-after'), '1');
});

test('a drained stream has a retry delay and ends with an error event', async t => {
  const rig = await openRig(t);
  const id = await interrupted(rig);
  const response = await restResponse(rig, `GET /tasks/${id}:subscribe`);
  const [head] = await Promise.all([restFrames(response, 3), rig.close()]);
  const [, drain, error] = head;
  assert.deepEqual([drain?.event, error?.event], ['drain', 'error']);
  assert.deepEqual(drain?.json, error?.json);
  assert.equal((error!.json as { error: { status: string } }).error.status, 'UNAVAILABLE');
});

test('any request gets JSON and never a 500, and nothing changes [S4-33]', async t => {
  const rig = await openRig(t);
  const id = await interrupted(rig);
  const before = await rest(rig, 'GET /tasks?includeArtifacts=true');
  const part = fc.oneof(
    fc.constantFrom(
      'tasks',
      'message:send',
      'message:stream',
      'pushNotificationConfigs',
      'a2a',
      'extendedAgentCard',
      `${id}:fly`,
      '',
    ),
    fc.string().map(encodeURIComponent),
    fc.constantFrom('%', '%zz', '%00', '..', '%2e%2e', '%ff'),
  );
  const name = fc.constantFrom(
    'contextId',
    'status',
    'pageSize',
    'pageToken',
    'historyLength',
    'statusTimestampAfter',
    'includeArtifacts',
    '__proto__',
    'cursor',
  );
  const query = fc.array(fc.tuple(name, fc.string().map(encodeURIComponent)), { maxLength: 4 });
  const member = fc.constantFrom('message', 'parts', 'role', 'configuration', 'metadata', 'taskId', 'id', 'tenant');
  const body = fc.oneof(
    fc.json(),
    fc.string(),
    fc.dictionary(member, fc.jsonValue()).map(value => JSON.stringify(value)),
  );
  const method = fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS');
  await fc.assert(
    fc.asyncProperty(method, fc.array(part, { maxLength: 4 }), query, body, async (verb, parts, pairs, sent) => {
      const path = `/${parts.join('/')}?${pairs.map(pair => pair.join('=')).join('&')}`;
      const answer = await rest(rig, `${verb} ${path}`, verb === 'GET' ? {} : { raw: sent });
      assert(answer.status < 500, `${verb} ${path} ${answer.status}`);
      assert.doesNotMatch(JSON.stringify(answer.body), /node_modules|\.ts:|at async/);
    }),
    { numRuns: 300 },
  );
  assert.deepEqual((await rest(rig, 'GET /tasks?includeArtifacts=true')).body, before.body);
  assert.deepEqual(rig.lines, []);
});

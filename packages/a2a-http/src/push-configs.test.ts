import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type DialectName, type JsonObject, PUSH_CONFIGS_MAX } from '@hopline/a2a';
import type { A2AServerOptions, Authenticate } from '@hopline/a2a-server';
import { isWebhookCountKey, LogDenied, LogUnavailable, type PushProgressEntry } from '@hopline/log';
import { call, type Method, open, openRig, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';
import { rest } from './rest.test-kit.ts';

const URL = 'https://hooks.example.org/a2a';
const NOT_FOUND = -32001;
const DIALECTS = ['1.0', '0.3', 'legacy'] as const;

const authenticate: Authenticate = async ({ headers }) => ({ subject: String(headers['x-subject']) });
const ANNA = { headers: { 'x-subject': 'anna' } };
const BERT = { headers: { 'x-subject': 'bert' } };

/** A task with input-required, on a server with push notifications. */
async function openInputRequired(
  t: TestContext,
  options: Partial<A2AServerOptions> = {},
  headers = {},
): Promise<{ rig: Rig; id: string }> {
  const rig = await openRig(t, { push: true, ...options });
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const sent = await call(rig, 'send', sendParams(userMessage('x')), { headers });
  return { rig, id: sent.result.task.id };
}

/** Params that set a webhook with every kind of secret. */
function setParams(dialect: DialectName, taskId: string, more: JsonObject = {}): JsonObject {
  const config = { url: URL, token: 'SECRET-1', ...more };
  if (dialect === '1.0') return { taskId, ...config, authentication: { scheme: 'Bearer', credentials: 'SECRET-2' } };
  const nested = { ...config, authentication: { schemes: ['Bearer'], credentials: 'SECRET-2' } };
  return { [dialect === '0.3' ? 'taskId' : 'id']: taskId, pushNotificationConfig: nested };
}

function namedParams(dialect: DialectName, taskId: string, id?: string): JsonObject {
  if (dialect === '1.0') return { taskId, id: id ?? taskId };
  return { id: taskId, ...(id !== undefined && { pushNotificationConfigId: id }) };
}

for (const dialect of DIALECTS) {
  test(`${dialect}: a configuration is stored with its secrets, and returned without them [S3-22 C-21]`, async t => {
    const { rig, id } = await openInputRequired(t);
    const set = await call(rig, 'createPush', setParams(dialect, id), { dialect, id: 'i', headers: version(dialect) });
    assert.equal(set.id, 'i');
    const expected = {
      '1.0': { id, taskId: id, url: URL, authentication: { scheme: 'Bearer' } },
      '0.3': { taskId: id, pushNotificationConfig: { id, url: URL, authentication: { schemes: ['Bearer'] } } },
      legacy: { id, pushNotificationConfig: { url: URL, authentication: { schemes: ['Bearer'] } } },
    }[dialect];
    assert.deepEqual(set.result, expected);
    const got = await call(rig, 'getPush', namedParams(dialect, id), { dialect, headers: version(dialect) });
    assert.deepEqual(got.result, expected);
    const stored = await rig.log.pushConfigs.get(`${id}.${Buffer.from(id).toString('base64url')}`);
    const { generation } = rig.relay.aggregate(id);
    assert.deepEqual(stored?.value, {
      taskId: id,
      id,
      url: URL,
      token: 'SECRET-1',
      authentication: { scheme: 'Bearer', credentials: 'SECRET-2' },
      dialect,
      after: generation,
      bytes: stored?.value.bytes,
    });
    assert.ok((stored?.value.bytes ?? 0) > JSON.stringify(stored?.value).length);
  });
}

const version = (dialect: DialectName): Record<string, string> => (dialect === 'legacy' ? { 'a2a-version': '0.1' } : {});

test('0.3 lists and deletes idempotently; every replica sees the same', async t => {
  const { rig, id } = await openInputRequired(t);
  const other = await rig.another();
  const asked = { dialect: '0.3' } as const;
  for (const name of ['b', 'a']) await call(rig, 'createPush', setParams('0.3', id, { id: name }), asked);
  const listed = await call(other, 'listPush', { id }, asked);
  assert.deepEqual(
    listed.result.map((one: { pushNotificationConfig: { id: string } }) => one.pushNotificationConfig.id),
    ['a', 'b'],
  );
  for (const _ of [1, 2]) {
    const deleted = await call(other, 'deletePush', namedParams('0.3', id, 'a'), asked);
    assert.deepEqual([deleted.error, deleted.result], [undefined, null]);
  }
  assert.equal((await call(rig, 'getPush', namedParams('0.3', id, 'a'), asked)).error?.code, NOT_FOUND);
  const { result } = await call(rig, 'getPush', { id }, asked);
  assert.equal(result.pushNotificationConfig.id, 'b', 'without an id: the one that is there');
});

test('HTTP+JSON creates, gets, lists in pages and deletes, without secrets', async t => {
  const { rig, id } = await openInputRequired(t);
  const path = `/tasks/${id}/pushNotificationConfigs`;
  const authentication = { scheme: 'Basic', credentials: 'SECRET' };
  for (const name of ['c', 'a/ü', 'b']) {
    const { status, body } = await rest(rig, `POST ${path}`, { body: { id: name, url: URL, token: 'SECRET', authentication } });
    const expected = { id: name, taskId: id, url: URL, authentication: { scheme: 'Basic' } };
    assert.deepEqual([status, body], [200, expected]);
    assert.deepEqual((await rest(rig, `GET ${path}/${encodeURIComponent(name)}`)).body, expected);
  }
  const seen: string[] = [];
  let token = '';
  do {
    const { status, body } = await rest(rig, `GET ${path}?pageSize=2&pageToken=${token}`);
    assert.equal(status, 200);
    seen.push(...body.configs.map((one: { id: string }) => one.id));
    token = body.nextPageToken;
  } while (token !== '');
  assert.deepEqual(seen, ['a/ü', 'b', 'c']);
  assert.equal((await rest(rig, `GET ${path}`)).body.configs.length, 3);
  for (const other of ['zz%25', 'Zg==', '_w']) {
    const { status, body } = await rest(rig, `GET ${path}?pageToken=${other}`);
    assert.deepEqual([status, body.error?.details[0].reason], [400, 'INVALID_PARAMS'], other);
    assert.match(body.error.message, /params\.pageToken must be the nextPageToken of an earlier response/);
  }
  for (const _ of [1, 2]) {
    const { status, body } = await rest(rig, `DELETE ${path}/b`);
    assert.deepEqual([status, body], [200, {}]);
  }
  const gone = await rest(rig, `GET ${path}/b`);
  assert.deepEqual([gone.status, gone.body.error.details[0].reason], [404, 'TASK_NOT_FOUND']);
  assert.deepEqual(rig.lines, []);
});

test('an unknown task, or one of another caller, is not found by any operation [S4-34]', async t => {
  const { rig, id } = await openInputRequired(t, { authenticate }, ANNA.headers);
  const created = await call(rig, 'createPush', setParams('1.0', id, { id: 'c' }), ANNA);
  assert.equal(created.result.id, 'c');
  const cases: [Method, (dialect: DialectName, taskId: string) => JsonObject][] = [
    ['createPush', setParams],
    ['getPush', (dialect, taskId) => namedParams(dialect, taskId, 'c')],
    ['listPush', (dialect, taskId) => (dialect === '1.0' ? { taskId } : { id: taskId })],
    ['deletePush', (dialect, taskId) => namedParams(dialect, taskId, 'c')],
    ['get', (_dialect, taskId) => ({ id: taskId })],
    ['cancel', (_dialect, taskId) => ({ id: taskId })],
    ['subscribe', (_dialect, taskId) => ({ id: taskId })],
  ];
  for (const dialect of ['1.0', '0.3'] as const) {
    for (const [method, params] of cases) {
      for (const taskId of [id, 'no-such', 'no such']) {
        const refused = await call(rig, method, params(dialect, taskId), { dialect, ...BERT });
        assert.equal(refused.error?.code, NOT_FOUND, `${dialect} ${method} ${taskId}`);
      }
    }
  }
  const legacy = { dialect: 'legacy' as const, headers: { ...BERT.headers, 'a2a-version': '0.1' } };
  for (const unknown of [id, 'no-such'])
    assert.equal((await call(rig, 'getPush', { id: unknown }, legacy)).error?.code, NOT_FOUND);
  assert.equal((await call(rig, 'createPush', setParams('legacy', id), legacy)).result.id, id, 'of a task of its own to come');
  const { result } = await call(rig, 'listPush', { taskId: id }, ANNA);
  assert.deepEqual(
    result.configs.map((one: { id: string }) => one.id),
    ['c'],
  );
});

test('a legacy client sets a webhook before its task; only that task uses it [S3-23]', async t => {
  const rig = await openRig(t, { push: true, authenticate });
  const begun: string[] = [];
  rig.relay.onClient = taskId => {
    begun.push(taskId);
    return rig.relay.answer(taskId, ['ok']);
  };
  const legacy = { dialect: 'legacy' as const };
  assert.equal((await call(rig, 'createPush', setParams('legacy', 't1'), { ...legacy, ...ANNA })).result.id, 't1');
  assert.equal((await call(rig, 'getPush', { id: 't1' }, { ...legacy, ...ANNA })).result.id, 't1');
  assert.equal((await call(rig, 'getPush', { id: 't1' }, { ...legacy, ...BERT })).error?.code, NOT_FOUND);
  for (const who of [ANNA, BERT]) {
    const message = { role: 'user', parts: [{ type: 'text', text: 'x' }] };
    assert.equal((await call(rig, 'send', { id: 't1', message }, { ...legacy, ...who })).result.id, 't1');
  }
  const [ofAnna, ofBert] = await Promise.all(begun.map(id => rig.log.pushConfigs.under(id)));
  assert.deepEqual(
    ofAnna?.map(({ value }) => [value.after, value.owner]),
    [[0, { subject: 'anna' }]],
  );
  assert.deepEqual(ofBert, [], 'the task of another caller with this id has no webhook');
  for (const dialect of ['1.0', '0.3'] as const) {
    const refused = await call(rig, 'createPush', setParams(dialect, 't3'), { dialect, ...ANNA });
    assert.equal(refused.error?.code, NOT_FOUND, `${dialect} has no ids of its own`);
  }
});

test('a webhook waits pushWaitMsMax for its task, then expires [S3-23]', async t => {
  const rig = await openRig(t, { push: true, limits: { pushWaitMsMax: 0 } });
  const waiting = await rig.another({ limits: { pushWaitMsMax: 3_600_000 } });
  const legacy = { dialect: 'legacy' as const };
  await call(rig, 'createPush', setParams('legacy', 't1'), legacy);
  await call(waiting, 'createPush', setParams('legacy', 't2'), legacy);
  assert.equal((await call(rig, 'getPush', { id: 't1' }, legacy)).error?.code, NOT_FOUND);
  assert.equal((await call(rig, 'getPush', { id: 't2' }, legacy)).result.id, 't2');
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  for (const id of ['t1', 't2']) {
    await call(rig, 'send', { id, message: { role: 'user', parts: [{ type: 'text', text: 'x' }] } }, legacy);
  }
  assert.equal((await rig.log.pushConfigs.under('t1')).length, 0);
  assert.equal((await rig.log.pushConfigs.under('t2')).length, 1);
  assert.equal((await call(rig, 'getPush', { id: 't2' }, legacy)).result.id, 't2', 'and with its task it stays');
});

test('an inline webhook is stored before its message, in every dialect [S4-22]', async t => {
  const rig = await openRig(t, { push: true });
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const stored: (number | undefined)[] = [];
  const append = rig.log.inputs.append.bind(rig.log.inputs);
  rig.log.inputs.append = async (taskId, record, options) => {
    stored.push((await rig.log.pushConfigs.under(taskId))[0]?.value.after);
    return append(taskId, record, options);
  };
  const push = { url: URL, token: 'SECRET' };
  const begin = {
    '1.0': { message: userMessage('x'), configuration: { taskPushNotificationConfig: push } },
    '0.3': { ...sendParams(userMessage('x'), '0.3'), configuration: { pushNotificationConfig: push } },
    legacy: { id: 'own', message: { role: 'user', parts: [{ type: 'text', text: 'x' }] }, pushNotification: push },
  };
  for (const dialect of DIALECTS) {
    const { result } = await call(rig, 'send', begin[dialect], { dialect });
    const id = result.task?.id ?? result.id;
    const [entry] = await rig.log.pushConfigs.under(id);
    assert.deepEqual(entry?.value, { taskId: id, id, ...push, dialect, after: 0, bytes: entry?.value.bytes });
  }
  const stream = await open(
    rig,
    'stream',
    { ...begin['0.3'], message: (sendParams(userMessage('y'), '0.3') as JsonObject).message },
    { dialect: '0.3' },
  );
  await stream.rest();
  assert.deepEqual(stored, [0, 0, 0, 0]);
  assert.doesNotMatch(JSON.stringify(rig.lines), /SECRET|hooks/);
});

test('a webhook set with a further message gets only later events; repeating it changes nothing, another URL starts at the message [S4-22]', async t => {
  const { rig, id } = await openInputRequired(t);
  const entryOf = async () => (await rig.log.pushConfigs.under(id))[0]!;
  const asked = rig.relay.aggregate(id).generation;
  const params = (url: string, text = 'y') => ({
    message: userMessage(text, { taskId: id, messageId: text }),
    configuration: { taskPushNotificationConfig: { url } },
  });
  await call(rig, 'send', params(URL));
  const first = await entryOf();
  assert.equal(first.value.after, asked);
  await call(rig, 'send', params(URL));
  await call(rig, 'createPush', { taskId: id, url: URL });
  assert.deepEqual(await entryOf(), first, 'the notifier sees no change');
  const now = rig.relay.aggregate(id).generation;
  assert(now > asked);
  await call(rig, 'send', params(`${URL}/other`, 'z'));
  assert.equal((await entryOf()).value.after, now);
});

test('the same URL with another token, or after its deliveries were abandoned, continues after the last delivery [S3-22]', async t => {
  const { rig, id } = await openInputRequired(t);
  const entryOf = async () => (await rig.log.pushConfigs.under(id))[0]!;
  const set = (token: string) => call(rig, 'createPush', { taskId: id, url: URL, token });
  await set('one');
  const { key, value, revision } = await entryOf();
  await set('two');
  assert.deepEqual([(await entryOf()).value.after, (await entryOf()).value.token], [value.after, 'two']);
  const recordProgress = (generation: number, more: Partial<PushProgressEntry> = {}) =>
    rig.log.pushProgress.put(key, { generation, failures: 0, ...more } as PushProgressEntry);
  await recordProgress(value.after + 5);
  await set('three');
  assert.equal((await entryOf()).value.after, value.after + 5);
  await recordProgress(value.after + 7, { over: 'abandoned' });
  const before = await entryOf();
  await set('three');
  const again = await entryOf();
  assert.equal(again.value.after, value.after + 7);
  assert(again.revision > before.revision && before.revision > revision, 'the notifier that abandoned it sees a change');
});

test('without push notifications every dialect refuses them, in requests of their own and inline, and nothing is stored [S4-23 S4-36]', async t => {
  const { rig, id } = await openInputRequired(t, { push: false });
  for (const dialect of DIALECTS) {
    for (const method of ['createPush', 'getPush', 'listPush', 'deletePush'] as const) {
      if (dialect === 'legacy' && (method === 'listPush' || method === 'deletePush')) continue;
      const refused = await call(rig, method, setParams(dialect, id), { dialect });
      assert.equal(refused.error?.code, -32003, `${dialect} ${method}`);
    }
  }
  const configuration = { taskPushNotificationConfig: { url: URL } };
  assert.equal((await call(rig, 'send', { message: userMessage('x'), configuration })).error?.code, -32003);
  const { status, body } = await rest(rig, `POST /tasks/${id}/pushNotificationConfigs`, { body: { url: URL } });
  assert.deepEqual([status, body.error.details[0].reason], [400, 'PUSH_NOTIFICATION_NOT_SUPPORTED']);
  assert.deepEqual(await rig.log.pushConfigs.under(id), []);
});

test('a task has at most PUSH_CONFIGS_MAX webhooks, despite concurrent requests', async t => {
  const { rig, id } = await openInputRequired(t);
  const create = (name: string) => call(rig, 'createPush', setParams('1.0', id, { id: name }));
  for (let index = 1; index < PUSH_CONFIGS_MAX - 1; index += 1) assert((await create(`c${index}`)).result);
  const { pushConfigs } = rig.log;
  const put = pushConfigs.put.bind(pushConfigs);
  const allChecked = Promise.withResolvers<void>();
  let checked = 0;
  pushConfigs.put = async (...entry) => {
    checked += 1;
    if (checked === 8) allChecked.resolve();
    await allChecked.promise;
    return put(...entry);
  };
  const racing = await Promise.all(Array.from({ length: 8 }, (_, index) => create(`r${index}`)));
  pushConfigs.put = put;
  assert((await rig.log.pushConfigs.under(id)).length <= PUSH_CONFIGS_MAX);
  for (const { error } of racing) assert(error === undefined || error.code === -32004);
  const left = PUSH_CONFIGS_MAX - (await rig.log.pushConfigs.under(id)).length;
  for (let index = 0; index < left; index += 1) assert((await create(`l${index}`)).result);
  const refused = await create('one-more');
  assert.match(refused.error?.message ?? '', /already has 16 push configurations/);
  assert((await create('c1')).result, 'one that is there is replaced');
});

test('a webhook of another caller for the same task is neither shown nor replaced nor deleted', async t => {
  const { rig, id } = await openInputRequired(t, { authenticate }, ANNA.headers);
  await call(rig, 'createPush', { taskId: id, id: 'hers', url: URL }, ANNA);
  const key = `${id}.${Buffer.from('his').toString('base64url')}`;
  const his = { taskId: id, id: 'his', url: URL, dialect: '1.0', after: 0, owner: { subject: 'bert' } } as const;
  const revision = await rig.log.pushConfigs.create(key, his);
  const { result } = await call(rig, 'listPush', { taskId: id }, ANNA);
  assert.deepEqual(
    result.configs.map((config: { id: string }) => config.id),
    ['hers'],
  );
  const { body } = await rest(rig, `GET /tasks/${id}/deliveries`, ANNA);
  assert.deepEqual(
    body.webhooks.map((webhook: { id: string }) => webhook.id),
    ['hers'],
  );
  assert.equal((await call(rig, 'getPush', { taskId: id, id: 'his' }, ANNA)).error?.code, NOT_FOUND);
  assert.equal((await call(rig, 'createPush', { taskId: id, id: 'his', url: `${URL}/other` }, ANNA)).error?.code, NOT_FOUND);
  await call(rig, 'deletePush', { taskId: id, id: 'his' }, ANNA);
  assert.equal((await rig.log.pushConfigs.get(key))?.revision, revision);
});

test('a new webhook is refused with 503 if its deliveries could not be recorded; an existing one is replaced', async t => {
  const { rig, id } = await openInputRequired(t);
  const create = (name: string) => rest(rig, `POST /tasks/${id}/pushNotificationConfigs`, { body: { id: name, url: URL } });
  let fill = 0.899;
  rig.log.pushProgress.extent = async () => ({ firstSeq: 1, lastSeq: 1, fill });
  assert.equal((await create('first')).status, 200);
  fill = 0.9;
  const refused = await create('second');
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  assert.deepEqual(
    (await rig.log.pushConfigs.under(id)).map(({ value }) => value.id),
    ['first'],
  );
  const { status } = await rest(rig, `POST /tasks/${id}/pushNotificationConfigs`, {
    body: { id: 'first', url: URL, token: 'x' },
  });
  assert.equal(status, 200);
});

test('an invalid webhook URL is refused before anything is stored, and never quoted', async t => {
  const { rig, id } = await openInputRequired(t);
  const generationBefore = rig.relay.aggregate(id).generation;
  for (const url of ['SECRET', 'ftp://SECRET.example/', 'https://user:SECRET@h.example/', 'javascript:SECRET']) {
    const set = await call(rig, 'createPush', { taskId: id, url });
    const sent = await call(rig, 'send', {
      message: userMessage('x', { taskId: id }),
      configuration: { taskPushNotificationConfig: { url } },
    });
    for (const { error } of [set, sent]) {
      assert.equal(error?.code, -32602);
      assert.match(error?.message ?? '', /the webhook URL (is|has|contains)/);
      assert.doesNotMatch(JSON.stringify(error), /SECRET/);
    }
  }
  assert.equal(rig.relay.aggregate(id).generation, generationBefore);
  const guarded = await rig.another({ webhookProblem: () => 'is not to be called' });
  assert.match(
    (await call(guarded, 'createPush', { taskId: id, url: URL })).error?.message ?? '',
    /webhook URL is not to be called$/,
  );
  assert.deepEqual(await rig.log.pushConfigs.under(id), []);
});

test('an unreachable log is UNAVAILABLE, and a message whose webhook is not stored is not appended', async t => {
  const { rig, id } = await openInputRequired(t);
  const generationBefore = rig.relay.aggregate(id).generation;
  rig.log.pushConfigs.put = rig.log.pushConfigs.under = async () => {
    throw new LogUnavailable('gone');
  };
  const message = userMessage('x', { taskId: id });
  for (const [method, params] of [
    ['createPush', { taskId: id, url: URL }],
    ['listPush', { taskId: id }],
    ['send', { message, configuration: { taskPushNotificationConfig: { url: URL } } }],
  ] as const) {
    assert.equal((await call(rig, method, params)).error?.data[0].reason, 'UNAVAILABLE', method);
  }
  assert.equal(rig.relay.aggregate(id).generation, generationBefore);
});

test('a legacy client with a webhook, set before or with its message, is answered at once; a client without one waits [S3-33]', async t => {
  const rig = await openRig(t, { push: true });
  const go = Promise.withResolvers<void>();
  rig.relay.onClient = async taskId => {
    if (taskId !== 'none') await go.promise;
    await rig.relay.answer(taskId, ['later']);
  };
  const legacy = { dialect: 'legacy' as const };
  const message = { role: 'user', parts: [{ type: 'text', text: 'x' }] };
  await call(rig, 'createPush', setParams('legacy', 'before'), legacy);
  const before = await call(rig, 'send', { id: 'before', message }, legacy);
  const along = await call(rig, 'send', { id: 'along', message, pushNotification: { url: URL } }, legacy);
  assert.deepEqual([before.result.status.state, along.result.status.state], ['submitted', 'submitted']);
  assert.equal((await call(rig, 'send', { id: 'none', message }, legacy)).result.status.state, 'completed');
  go.resolve();
});

test('a legacy client with a webhook reads that its task is submitted, even if the task works before its message is acknowledged [S3-33]', async t => {
  const rig = await openRig(t, { push: true });
  const legacy = { dialect: 'legacy' as const };
  const working = Promise.withResolvers<void>();
  rig.relay.onClient = async taskId => {
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    working.resolve();
  };
  const { append } = rig.log.inputs;
  t.mock.method(rig.log.inputs, 'append', async (...args: Parameters<typeof append>) => {
    const stored = await append.apply(rig.log.inputs, args);
    await working.promise;
    // Ingress reads the working task.
    while ((await call(rig, 'get', { id: 'task' }, legacy)).result.status.state !== 'working');
    return stored;
  });
  const message = { role: 'user', parts: [{ type: 'text', text: 'x' }] };
  const sent = await call(rig, 'send', { id: 'task', message, pushNotification: { url: URL } }, legacy);
  assert.equal(sent.result.status.state, 'submitted');
});

test('each webhook has one count entry of its bytes for its owner; a replaced and a deleted one leave none', async t => {
  const { rig, id } = await openInputRequired(t, { authenticate }, ANNA.headers);
  const set = (name: string, path = '') =>
    call(rig, 'createPush', setParams('1.0', id, { id: name, url: `${URL}${path}` }), ANNA);
  const counts = async () => (await rig.log.pushConfigs.match(['*.*'])).map(({ key }) => key).filter(isWebhookCountKey);
  for (const name of ['a', 'b']) await set(name);
  const [before] = await counts();
  await set('a');
  assert.deepEqual([(await counts()).length, (await counts())[0]], [2, before], 'an identical one');
  await set('a', '/longer');
  const both = await counts();
  assert.equal(both.length, 2);
  assert.ok(!both.includes(before!));
  for (const name of ['a', 'b']) await call(rig, 'deletePush', { taskId: id, id: name }, ANNA);
  assert.deepEqual(await counts(), []);
});

test('a webhook can be deleted and replaced even with the NATS user of an earlier version', async t => {
  const { rig, id } = await openInputRequired(t, { authenticate }, ANNA.headers);
  rig.log.pushConfigs.purge = async () => {
    throw new LogDenied('NATS does not permit user ingress to publish to $JS.API.STREAM.PURGE');
  };
  const set = (path: string) => call(rig, 'createPush', setParams('1.0', id, { id: 'a', url: `${URL}${path}` }), ANNA);
  for (const path of ['', '/longer']) assert.equal((await set(path)).error, undefined);
  assert.equal((await call(rig, 'deletePush', { taskId: id, id: 'a' }, ANNA)).error, undefined);
  assert.deepEqual(await rig.log.pushConfigs.under(id), []);
});

/** Delivery state as the owner of the task may see it. */
async function deliveriesOf(rig: Rig, id: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${rig.url}/tasks/${id}/deliveries`, { headers });
  return { status: response.status, body: await response.text() };
}

test('the owner sees the progress of each webhook, and never its secrets', async t => {
  const { rig, id } = await openInputRequired(t, { authenticate }, ANNA.headers);
  const url = 'https://hooks.example.org/a2a?key=SECRET-3';
  for (const name of ['b', 'a']) await call(rig, 'createPush', setParams('1.0', id, { id: name, url }), ANNA);
  const key = `${id}.${Buffer.from('a').toString('base64url')}`;
  const { revision, value } = (await rig.log.pushConfigs.get(key))!;
  const before = {
    id: 'b',
    url: 'https://hooks.example.org/a2a',
    dialect: '1.0',
    generation: value.after,
    failures: 0,
    state: 'delivering',
  };
  const written = { config: revision, generation: 7, seq: 1, failures: 2, failingSince: 1_000, retryAt: 5_000 };
  const stored = await rig.log.pushProgress.create(key, written);
  const failing = { ...before, id: 'a', generation: 7, failures: 2, state: 'failing' };
  const { status, body } = await deliveriesOf(rig, id, ANNA.headers);
  assert.equal(status, 200);
  const times = { failingSince: '1970-01-01T00:00:01.000Z', retryAt: '1970-01-01T00:00:05.000Z' };
  assert.deepEqual(JSON.parse(body), { webhooks: [{ ...failing, ...times }, before] });
  assert.ok(!body.includes('SECRET'));
  await rig.log.pushProgress.update(key, { ...written, over: 'abandoned' }, stored);
  const [abandoned] = (JSON.parse((await deliveriesOf(rig, id, ANNA.headers)).body) as { webhooks: object[] }).webhooks;
  assert.deepEqual(abandoned, { ...failing, state: 'abandoned' });
  // Another configuration with the same id: deliveries of the previous one do not count.
  await call(rig, 'createPush', setParams('1.0', id, { id: 'a', url: 'https://other.example.org/' }), ANNA);
  const [renewed] = (JSON.parse((await deliveriesOf(rig, id, ANNA.headers)).body) as { webhooks: object[] }).webhooks;
  assert.deepEqual(renewed, { ...before, id: 'a', url: 'https://other.example.org/' });
});

test('webhooks of another owner, an unknown task, and a server without webhooks have no deliveries', async t => {
  const { rig, id } = await openInputRequired(t, { authenticate }, ANNA.headers);
  await call(rig, 'createPush', setParams('1.0', id), ANNA);
  assert.equal((await deliveriesOf(rig, id, BERT.headers)).status, 404);
  assert.equal((await deliveriesOf(rig, 'unknown', ANNA.headers)).status, 404);
  const without = await openRig(t);
  assert.equal((await deliveriesOf(without, id)).status, 404);
});

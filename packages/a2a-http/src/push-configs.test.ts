import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type DialectName, type JsonObject, PUSH_CONFIGS_MAX } from '@hopline/a2a';
import type { A2AServerOptions, Authenticate } from '@hopline/a2a-server';
import { LogUnavailable, type PushProgressEntry } from '@hopline/log';
import { call, type Method, open, openRig, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';
import { rest } from './rest.test-kit.ts';

const URL = 'https://hooks.example.org/a2a';
const NOT_FOUND = -32001;
const DIALECTS = ['1.0', '0.3', 'legacy'] as const;

const authenticate: Authenticate = async ({ headers }) => ({ subject: String(headers['x-subject']) });
const ANNA = { headers: { 'x-subject': 'anna' } };
const BERT = { headers: { 'x-subject': 'bert' } };

/** A task that asks, at a door that takes webhooks. */
async function openAsking(
  t: TestContext,
  options: Partial<A2AServerOptions> = {},
  headers = {},
): Promise<{ rig: Rig; id: string }> {
  const rig = await openRig(t, { push: true, ...options });
  rig.relay.onClient = taskId => rig.relay.ends(taskId, 'INPUT_REQUIRED');
  const sent = await call(rig, 'send', sendParams(userMessage('x')), { headers });
  return { rig, id: sent.result.task.id };
}

/** Params that set a webhook for a task, with every secret it can have. */
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
  test(`${dialect}: what was set is given back without its secrets, and kept with them [S3-22 C-21]`, async t => {
    const { rig, id } = await openAsking(t);
    const set = await call(rig, 'createPush', setParams(dialect, id), { dialect, id: 'i', headers: version(dialect) });
    assert.equal(set.id, 'i');
    const shown = {
      '1.0': { id, taskId: id, url: URL, authentication: { scheme: 'Bearer' } },
      '0.3': { taskId: id, pushNotificationConfig: { id, url: URL, authentication: { schemes: ['Bearer'] } } },
      legacy: { id, pushNotificationConfig: { url: URL, authentication: { schemes: ['Bearer'] } } },
    }[dialect];
    assert.deepEqual(set.result, shown);
    const got = await call(rig, 'getPush', namedParams(dialect, id), { dialect, headers: version(dialect) });
    assert.deepEqual(got.result, shown);
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
    });
  });
}

const version = (dialect: DialectName): Record<string, string> => (dialect === 'legacy' ? { 'a2a-version': '0.1' } : {});

test('0.3 lists and deletes, and a delete of what is gone is none; every replica sees the same', async t => {
  const { rig, id } = await openAsking(t);
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

test('HTTP+JSON: create, get, list by pages, delete; without secrets', async t => {
  const { rig, id } = await openAsking(t);
  const path = `/tasks/${id}/pushNotificationConfigs`;
  const authentication = { scheme: 'Basic', credentials: 'SECRET' };
  for (const name of ['c', 'a/ü', 'b']) {
    const { status, body } = await rest(rig, `POST ${path}`, { body: { id: name, url: URL, token: 'SECRET', authentication } });
    const shown = { id: name, taskId: id, url: URL, authentication: { scheme: 'Basic' } };
    assert.deepEqual([status, body], [200, shown]);
    assert.deepEqual((await rest(rig, `GET ${path}/${encodeURIComponent(name)}`)).body, shown);
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
  for (const _ of [1, 2]) {
    const { status, body } = await rest(rig, `DELETE ${path}/b`);
    assert.deepEqual([status, body], [200, {}]);
  }
  const gone = await rest(rig, `GET ${path}/b`);
  assert.deepEqual([gone.status, gone.body.error.details[0].reason], [404, 'TASK_NOT_FOUND']);
  assert.deepEqual(rig.lines, []);
});

test('an unknown task, and one that is not the caller’s, are not found, whatever is asked [S4-34]', async t => {
  const { rig, id } = await openAsking(t, { authenticate }, ANNA.headers);
  const own = await call(rig, 'createPush', setParams('1.0', id, { id: 'c' }), ANNA);
  assert.equal(own.result.id, 'c');
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
  for (const method of ['createPush', 'getPush'] as const) {
    const params = method === 'getPush' ? { id } : setParams('legacy', id);
    assert.equal((await call(rig, method, params, legacy)).error?.code, NOT_FOUND, method);
  }
  assert.equal((await call(rig, 'getPush', { id: 'no-such' }, legacy)).error?.code, NOT_FOUND);
  assert.equal((await call(rig, 'getPush', { taskId: id, id: 'c' }, ANNA)).result.id, 'c');
});

test('a legacy client names the webhook before the task with its own id is there; its task alone is told [S3-23]', async t => {
  const rig = await openRig(t, { push: true, authenticate });
  rig.relay.onClient = taskId => rig.relay.answers(taskId, ['ok']);
  const legacy = { dialect: 'legacy' as const };
  for (const [id, who] of [
    ['t1', ANNA],
    ['t2', BERT],
  ] as const) {
    assert.equal((await call(rig, 'createPush', setParams('legacy', id), { ...legacy, ...who })).result.id, id);
  }
  assert.equal((await call(rig, 'getPush', { id: 't1' }, { ...legacy, ...ANNA })).result.id, 't1');
  assert.equal((await call(rig, 'getPush', { id: 't1' }, { ...legacy, ...BERT })).error?.code, NOT_FOUND);
  assert.equal((await call(rig, 'createPush', setParams('legacy', 't1'), { ...legacy, ...BERT })).error?.code, NOT_FOUND);
  for (const id of ['t1', 't2']) {
    const message = { role: 'user', parts: [{ type: 'text', text: 'x' }] };
    assert.equal((await call(rig, 'send', { id, message }, { ...legacy, ...ANNA })).result.id, id);
  }
  const [kept, dropped] = await Promise.all(['t1', 't2'].map(id => rig.log.pushConfigs.under(id)));
  assert.deepEqual(
    kept?.map(({ value }) => [value.after, value.owner]),
    [[0, { subject: 'anna' }]],
  );
  assert.deepEqual(dropped, [], 'what somebody else left there is not told of');
  for (const dialect of ['1.0', '0.3'] as const) {
    const refused = await call(rig, 'createPush', setParams(dialect, 't3'), { dialect, ...ANNA });
    assert.equal(refused.error?.code, NOT_FOUND, `${dialect} has no ids of its own`);
  }
});

test('a webhook waits pushWaitMsMax for its task, then it is none [S3-23]', async t => {
  const rig = await openRig(t, { push: true, limits: { pushWaitMsMax: 0 } });
  const waiting = await rig.another({ limits: { pushWaitMsMax: 3_600_000 } });
  const legacy = { dialect: 'legacy' as const };
  await call(rig, 'createPush', setParams('legacy', 't1'), legacy);
  await call(waiting, 'createPush', setParams('legacy', 't2'), legacy);
  assert.equal((await call(rig, 'getPush', { id: 't1' }, legacy)).error?.code, NOT_FOUND);
  assert.equal((await call(rig, 'getPush', { id: 't2' }, legacy)).result.id, 't2');
  rig.relay.onClient = taskId => rig.relay.answers(taskId, ['ok']);
  for (const id of ['t1', 't2']) {
    await call(rig, 'send', { id, message: { role: 'user', parts: [{ type: 'text', text: 'x' }] } }, legacy);
  }
  assert.equal((await rig.log.pushConfigs.under('t1')).length, 0);
  assert.equal((await rig.log.pushConfigs.under('t2')).length, 1);
  assert.equal((await call(rig, 'getPush', { id: 't2' }, legacy)).result.id, 't2', 'and with its task it stays');
});

test('a webhook that comes along with a message is stored before the message is said, in every dialect [S4-22]', async t => {
  const rig = await openRig(t, { push: true });
  rig.relay.onClient = taskId => rig.relay.ends(taskId, 'INPUT_REQUIRED');
  const stored: (number | undefined)[] = [];
  const say = rig.log.inputs.append.bind(rig.log.inputs);
  rig.log.inputs.append = async (taskId, record, options) => {
    stored.push((await rig.log.pushConfigs.under(taskId))[0]?.value.after);
    return say(taskId, record, options);
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
    assert.deepEqual(entry?.value, { taskId: id, id, ...push, dialect, after: 0 });
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

test('with a further message only what follows is told; the same again changes nothing, another address begins anew [S4-22]', async t => {
  const { rig, id } = await openAsking(t);
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
  assert.deepEqual(await entryOf(), first, 'whoever tells it sees no change');
  const now = rig.relay.aggregate(id).generation;
  assert(now > asked);
  await call(rig, 'send', params(`${URL}/other`, 'z'));
  assert.equal((await entryOf()).value.after, now);
});

test('the same webhook with another token, or given up before, goes on where telling it ended [S3-22]', async t => {
  const { rig, id } = await openAsking(t);
  const entryOf = async () => (await rig.log.pushConfigs.under(id))[0]!;
  const set = (token: string) => call(rig, 'createPush', { taskId: id, url: URL, token });
  await set('one');
  const { key, value, revision } = await entryOf();
  await set('two');
  assert.deepEqual([(await entryOf()).value.after, (await entryOf()).value.token], [value.after, 'two']);
  const told = (generation: number, more: Partial<PushProgressEntry> = {}) =>
    rig.log.pushProgress.put(key, { generation, failures: 0, ...more } as PushProgressEntry);
  await told(value.after + 5);
  await set('three');
  assert.equal((await entryOf()).value.after, value.after + 5);
  await told(value.after + 7, { over: 'abandoned' });
  const before = await entryOf();
  await set('three');
  const again = await entryOf();
  assert.equal(again.value.after, value.after + 7);
  assert(again.revision > before.revision && before.revision > revision, 'a change is seen by whoever had given up');
});

test('where webhooks are not offered every dialect says so, alone and along with a message, and nothing is stored [S4-23 S4-36]', async t => {
  const { rig, id } = await openAsking(t, { push: false });
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

test('a task takes PUSH_CONFIGS_MAX webhooks, however many ask at once', async t => {
  const { rig, id } = await openAsking(t);
  const ask = (name: string) => call(rig, 'createPush', setParams('1.0', id, { id: name }));
  for (let index = 1; index < PUSH_CONFIGS_MAX - 1; index += 1) assert((await ask(`c${index}`)).result);
  const racing = await Promise.all(Array.from({ length: 8 }, (_, index) => ask(`r${index}`)));
  assert((await rig.log.pushConfigs.under(id)).length <= PUSH_CONFIGS_MAX);
  for (const { error } of racing) assert(error === undefined || error.code === -32004);
  const left = PUSH_CONFIGS_MAX - (await rig.log.pushConfigs.under(id)).length;
  for (let index = 0; index < left; index += 1) assert((await ask(`l${index}`)).result);
  const refused = await ask('one-more');
  assert.match(refused.error?.message ?? '', /has 16 push configurations already/);
  assert((await ask('c1')).result, 'one that is there is replaced');
});

test('an address that no webhook can have is refused before anything happens, and never quoted', async t => {
  const { rig, id } = await openAsking(t);
  const said = rig.relay.aggregate(id).generation;
  for (const url of ['SECRET', 'ftp://SECRET.example/', 'https://user:SECRET@h.example/', 'javascript:SECRET']) {
    const set = await call(rig, 'createPush', { taskId: id, url });
    const sent = await call(rig, 'send', {
      message: userMessage('x', { taskId: id }),
      configuration: { taskPushNotificationConfig: { url } },
    });
    for (const { error } of [set, sent]) {
      assert.equal(error?.code, -32602);
      assert.match(error?.message ?? '', /the URL of the webhook (is|holds)/);
      assert.doesNotMatch(JSON.stringify(error), /SECRET/);
    }
  }
  assert.equal(rig.relay.aggregate(id).generation, said);
  const guarded = await rig.another({ webhookProblem: () => 'is not to be called' });
  assert.match(
    (await call(guarded, 'createPush', { taskId: id, url: URL })).error?.message ?? '',
    /webhook is not to be called$/,
  );
  assert.deepEqual(await rig.log.pushConfigs.under(id), []);
});

test('a log that cannot be reached is UNAVAILABLE, and a message whose webhook is not stored is not said', async t => {
  const { rig, id } = await openAsking(t);
  const said = rig.relay.aggregate(id).generation;
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
  assert.equal(rig.relay.aggregate(id).generation, said);
});

test('a legacy client that named a webhook, before or with its message, is answered at once; one that named none waits [S3-33]', async t => {
  const rig = await openRig(t, { push: true });
  const go = Promise.withResolvers<void>();
  rig.relay.onClient = async taskId => {
    if (taskId !== 'none') await go.promise;
    await rig.relay.answers(taskId, ['later']);
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

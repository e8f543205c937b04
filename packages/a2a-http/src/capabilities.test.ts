import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DIALECTS, type DialectName, type JsonObject } from '@hopline/a2a';
import { RESUME_EXTENSION_URI, resumeExtension } from '@hopline/agent-card';
import { call, open, openRig, type Rig, sendParams, shape, userMessage } from './http-server.test-kit.ts';
import { rest } from './rest.test-kit.ts';

const DIALECT_NAMES = Object.keys(DIALECTS) as DialectName[];
const resuming = { extensions: [resumeExtension] };

/** Params of a first message, in any dialect. */
const first = (dialect: DialectName): JsonObject => {
  const params = sendParams(userMessage('x'), dialect);
  return dialect === 'legacy' ? { ...params, id: crypto.randomUUID() } : params;
};

function answering(rig: Rig): void {
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['a', 'b', 'c']);
}

async function post(rig: Rig, method: string, dialect: DialectName, params: JsonObject, headers: Record<string, string> = {}) {
  const version = { '1.0': '1.0', '0.3': '0.3', legacy: '0.1' }[dialect];
  const response = await fetch(rig.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': version, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const body = (await response.json()) as { result?: JsonObject; error?: { code: number } };
  return { body, headers: response.headers };
}

test('a server that does not declare streaming refuses a stream with -32004 in every dialect and binding, and stores nothing [S3-2 S4-2]', async t => {
  const rig = await openRig(t, { streaming: false });
  answering(rig);
  for (const dialect of DIALECT_NAMES) {
    const { methods } = DIALECTS[dialect];
    for (const [method, params] of [
      [methods.stream, first(dialect)],
      [methods.subscribe, { id: 'any' }],
    ] as const) {
      const { body } = await post(rig, method, dialect, params);
      assert.equal(body.error?.code, -32004, `${dialect} ${method}`);
    }
  }
  const asked = await rest(rig, 'POST /message:stream', { body: first('1.0') });
  const followed = await rest(rig, 'GET /tasks/any:subscribe');
  for (const { status, body } of [asked, followed]) {
    assert.deepEqual([status, body.error.details[0].reason], [400, 'UNSUPPORTED_OPERATION']);
  }
  assert.equal((await rest(rig, 'GET /tasks')).body.totalSize, 0);
  const sent = await call(rig, 'send', first('1.0'));
  assert.equal(sent.result.task.status.state, 'TASK_STATE_COMPLETED');
});

test('the extended card is the configured one, over JSON-RPC of both versions and over HTTP+JSON [S4-2]', async t => {
  const rig = await openRig(t, { extendedCard: async () => ({ name: 'more' }) });
  for (const [dialect, method] of [
    ['1.0', 'GetExtendedAgentCard'],
    ['0.3', 'agent/getAuthenticatedExtendedCard'],
  ] as const) {
    assert.deepEqual((await post(rig, method, dialect, {})).body.result, { name: 'more' });
  }
  assert.deepEqual((await rest(rig, 'GET /extendedAgentCard')).body, { name: 'more' });
});

test('without an extended card each version has its own error [S4-2]', async t => {
  const rig = await openRig(t);
  assert.equal((await post(rig, 'GetExtendedAgentCard', '1.0', {})).body.error?.code, -32004);
  assert.equal((await post(rig, 'agent/getAuthenticatedExtendedCard', '0.3', {})).body.error?.code, -32007);
  assert.equal((await rest(rig, 'GET /extendedAgentCard')).body.error.details[0].reason, 'UNSUPPORTED_OPERATION');
});

const HEADER = { '1.0': 'a2a-extensions', '0.3': 'x-a2a-extensions' } as const;

/** Removes the generations from the result of a frame, and returns them. */
function stripped(result: JsonObject): { bare: JsonObject; generation: unknown } {
  const copy = structuredClone(result) as Record<string, Record<string, unknown>>;
  const shown = (copy.task ?? copy.statusUpdate ?? copy.artifactUpdate ?? copy) as { metadata?: Record<string, unknown> };
  const { generation, ...others } = shown.metadata ?? {};
  if (Object.keys(others).length > 0) shown.metadata = others;
  else delete shown.metadata;
  return { bare: copy, generation };
}

test('with the extension, events have their generation; nothing else differs [S3-31]', async t => {
  const rig = await openRig(t, resuming);
  const begun = Promise.withResolvers<string>();
  rig.relay.onClient = async taskId => {
    await rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
    await rig.relay.openArtifact(taskId, 'l');
    await rig.relay.text(taskId, 'l', 'a');
    begun.resolve(taskId);
  };
  await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }));
  const taskId = await begun.promise;
  for (const dialect of ['1.0', '0.3'] as const) {
    const asking = { dialect, headers: { [HEADER[dialect]]: `urn:other, ${RESUME_EXTENSION_URI}` } };
    const [plain, active] = await Promise.all([
      open(rig, 'subscribe', { id: taskId }, { dialect }),
      open(rig, 'subscribe', { id: taskId }, asking),
    ]);
    assert.equal(plain.response.headers.get(HEADER[dialect]), null);
    assert.equal(active.response.headers.get(HEADER[dialect]), RESUME_EXTENSION_URI);
    const heads = [await plain.take(1), await active.take(1)];
    await rig.relay.text(taskId, 'l', dialect);
    const frames = [
      [...heads[0]!, ...(await plain.take(1))],
      [...heads[1]!, ...(await active.take(1))],
    ];
    for (const [at, frame] of frames[1]!.entries()) {
      const { bare, generation } = stripped(frame.rpc.result);
      assert.equal(generation, Number(frame.id!.split('.')[0]));
      assert.deepEqual([frame.id, bare], [frames[0]![at]!.id, frames[0]![at]!.rpc.result]);
    }
    await Promise.all([plain.cut(), active.cut()]);
  }
});

test('a new and a resumed stream have the same generations, over HTTP+JSON too [S3-31]', async t => {
  const rig = await openRig(t, resuming);
  answering(rig);
  const headers = { 'a2a-extensions': RESUME_EXTENSION_URI };
  const stream = await open(rig, 'stream', first('1.0'), { headers });
  const frames = await stream.rest();
  const counted = frames.map(frame => stripped(frame.rpc.result).generation);
  assert.deepEqual(
    counted,
    Array.from({ length: frames.length }, (_, index) => index + 1),
  );
  assert.ok(shape(frames).at(-1) === 'completed' && frames.length > 5);
  const id = frames[0]!.rpc.result.task.id as string;
  const after = { ...headers, 'last-event-id': frames[2]!.id!, 'a2a-version': '1.0' };
  const response = await fetch(`${rig.url}/tasks/${id}:subscribe`, { headers: after });
  assert.equal(response.headers.get('a2a-extensions'), RESUME_EXTENSION_URI);
  const data = (await response.text()).split('\n').filter(line => line.startsWith('data: '));
  assert.deepEqual(
    data.map(line => JSON.parse(line.slice(6))),
    frames.slice(3).map(frame => frame.rpc.result),
  );
});

test('a required extension must be requested, except in the legacy form, which has no extensions', async t => {
  const required = { uri: 'urn:needed', description: '', required: true };
  const rig = await openRig(t, { extensions: [required] });
  answering(rig);
  const refused = await post(rig, 'SendMessage', '1.0', first('1.0'));
  assert.equal(refused.body.error?.code, -32008);
  const taken = await post(rig, 'SendMessage', '1.0', first('1.0'), { 'a2a-extensions': 'urn:needed' });
  assert.deepEqual([taken.body.error, taken.headers.get('a2a-extensions')], [undefined, 'urn:needed']);
  const legacy = await post(rig, 'tasks/send', 'legacy', first('legacy'), { 'a2a-extensions': 'urn:needed' });
  assert.deepEqual([legacy.body.error, legacy.headers.get('a2a-extensions')], [undefined, null]);
});

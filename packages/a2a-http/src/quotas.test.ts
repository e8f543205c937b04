import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { A2AServerOptions, Authenticate, Limits } from '@hopline/a2a-server';
import { changeSpans, LogUnavailable, tenantBytesKey } from '@hopline/log';
import { startTelemetry } from '@hopline/telemetry';
import { until } from '../../../test/kit/until.ts';
import { call, open, openRig, post, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';
import { rest } from './rest.test-kit.ts';

const authenticate: Authenticate = async ({ headers }) => ({
  ...(headers['x-tenant'] !== undefined && { tenant: String(headers['x-tenant']) }),
  subject: String(headers['x-subject']),
});
const caller = (subject: string, tenant?: string) => ({
  'x-subject': subject,
  ...(tenant !== undefined && { 'x-tenant': tenant }),
});
const ANNA = caller('anna');
const BERT = caller('bert');

function openLimited(t: TestContext, limits: Partial<Limits>, more: Partial<A2AServerOptions> = {}): Promise<Rig> {
  return openRig(t, { authenticate, limits: limits as Limits, ...more });
}

const later = (text = 'x', more = {}) => sendParams(userMessage(text, more), '1.0', { blocking: false });

/** Status, reason and Retry-After of a response that refuses a request at a limit. */
async function refusal(response: Response): Promise<{ status: number; reason: string; retryAfterS: number }> {
  const { error } = (await response.json()) as { error: { data: { reason: string; metadata: { retryable: string } }[] } };
  assert.equal(error.data[0]?.metadata.retryable, 'true');
  return { status: response.status, reason: error.data[0].reason, retryAfterS: Number(response.headers.get('retry-after')) };
}

async function assertRefused(response: Response, retryAfterS: { from: number; to: number } = { from: 1, to: 10 }): Promise<void> {
  const { status, reason, retryAfterS: found } = await refusal(response);
  assert.deepEqual([status, reason], [429, 'QUOTA_EXCEEDED']);
  assert.ok(found >= retryAfterS.from && found <= retryAfterS.to, String(found));
}

async function begun(rig: Rig, headers: Record<string, string>): Promise<string> {
  const { result } = await call(rig, 'send', later(), { headers });
  return result.task.id;
}

test('one caller has at most its share of the streams; further ones get 429, and other callers are served', async t => {
  const rig = await openLimited(t, { streamsMax: 5 });
  const [hers, his] = [await begun(rig, ANNA), await begun(rig, BERT)];
  for (let n = 1; n <= 2; n += 1) await (await open(rig, 'subscribe', { id: hers }, { headers: ANNA })).take(1);
  await assertRefused(await post(rig, 'subscribe', { id: hers }, { headers: ANNA }), { from: 1, to: 1 });
  await assertRefused(await post(rig, 'stream', sendParams(userMessage('x')), { headers: ANNA }));
  await assertRefused(await post(rig, 'send', sendParams(userMessage('x')), { headers: ANNA }));
  await (await open(rig, 'subscribe', { id: his }, { headers: BERT })).take(1);
  assert.equal(rig.totals.requestsRefused, 3);
});

test('metrics contain the tenant and the hashed caller of requests and refusals, so that it is known who gets 429', async t => {
  const telemetry = await startTelemetry({ service: 'ingress', instance: 'ingress-1', version: '0', env: {} });
  t.after(() => telemetry.shutdown());
  const rig = await openLimited(t, { ownerMessagesPerSecond: 0.02, ownerMessagesBurst: 2 }, { metrics: telemetry.metrics });
  const [eva, otto] = [caller('eva', 'acme'), caller('otto', 'globex')];
  for (let n = 1; n <= 2; n += 1) await begun(rig, eva);
  for (let n = 1; n <= 3; n += 1) await assertRefused(await post(rig, 'send', later(), { headers: eva }), { from: 1, to: 50 });
  await begun(rig, otto);
  const text = await telemetry.metricsText();
  const shown = [...text.matchAll(/^hopline_tenant_(\w+)_total\{.*tenant="(\w+)",caller="(\w+)"(.*)\} (\d+)$/gm)].map(found =>
    found.slice(1),
  );
  // `printf '["acme","eva"]' | sha256sum | cut -c 1-12`, as the runbook shows.
  assert.deepEqual(shown, [
    ['requests', 'acme', '1e02621f1062', '', '5'],
    ['requests', 'globex', 'ba53d9ed52db', '', '1'],
    ['requests_refused', 'acme', '1e02621f1062', ',reason="messages"', '3'],
  ]);
  assert.match(text, /^hopline_requests_refused_total\{service="ingress",reason="messages"\} 3$/m);
});

test('a caller that has used up its streams can still cancel, and send without waiting', async t => {
  const rig = await openLimited(t, { streamsMax: 5 });
  const id = await begun(rig, ANNA);
  for (let n = 1; n <= 2; n += 1) await (await open(rig, 'subscribe', { id }, { headers: ANNA })).take(1);
  await begun(rig, ANNA);
  const canceled = await call(rig, 'cancel', { id }, { headers: ANNA });
  assert.equal(canceled.result.status.state, 'TASK_STATE_CANCELED');
});

test('neither a caller nor a tenant can take all streams with any settings', async t => {
  const rig = await openLimited(t, { streamsMax: 5, ownerStreamsMax: 100, tenantLimitFactor: 100 });
  const owners = [caller('a', 't'), caller('b', 't')];
  const ids = [await begun(rig, owners[0]!), await begun(rig, owners[1]!)];
  for (const n of [0, 1, 0, 1]) await (await open(rig, 'subscribe', { id: ids[n]! }, { headers: owners[n]! })).take(1);
  for (const n of [0, 1]) await assertRefused(await post(rig, 'subscribe', { id: ids[n]! }, { headers: owners[n]! }));
  await (await open(rig, 'subscribe', { id: await begun(rig, BERT) }, { headers: BERT })).take(1);
});

test('without authentication all callers count as one caller, which may take all streams', async t => {
  const rig = await openRig(t, { limits: { streamsMax: 2 } });
  const { result } = await call(rig, 'send', later());
  for (let n = 1; n <= 2; n += 1) await (await open(rig, 'subscribe', { id: result.task.id })).take(1);
  assert.equal((await post(rig, 'subscribe', { id: result.task.id })).status, 503);
});

test('messages up to the burst are accepted, and the next one gets 429 with the time to wait; all callers of a tenant share one burst', async t => {
  const rig = await openLimited(t, { ownerMessagesPerSecond: 0.02, ownerMessagesBurst: 2, tenantLimitFactor: 2 });
  for (let n = 1; n <= 2; n += 1) await begun(rig, ANNA);
  await assertRefused(await post(rig, 'send', later(), { headers: ANNA }), { from: 1, to: 50 });
  await assertRefused(await post(rig, 'stream', sendParams(userMessage('x')), { headers: ANNA }), { from: 1, to: 50 });
  await begun(rig, BERT);
  for (const subject of ['a', 'a', 'b', 'b']) await begun(rig, caller(subject, 't'));
  await assertRefused(await post(rig, 'send', later(), { headers: caller('c', 't') }), { from: 1, to: 50 });
  assert.ok((await call(rig, 'list', {}, { headers: ANNA })).result, 'reading does not count as a message');
});

test('requests are accepted up to a burst of bytes, the next gets 429, and a cancel of at most 16 KiB is never refused', async t => {
  const rig = await openLimited(t, { ownerRequestBytesPerSecond: 1_024, ownerRequestBytesBurst: 32_768, bodyBytesMax: 32_768 });
  const id = await begun(rig, ANNA);
  const large = later('x'.repeat(30_000));
  assert.equal((await post(rig, 'send', large, { headers: ANNA })).status, 200);
  await assertRefused(await post(rig, 'send', large, { headers: ANNA }), { from: 20, to: 31 });
  assert.equal((await post(rig, 'send', large, { headers: BERT })).status, 200);
  // Refused before its body is parsed.
  const notJson = { method: 'POST', headers: { ...ANNA, 'content-type': 'application/json' }, body: 'x'.repeat(30_000) };
  assert.equal((await fetch(rig.url, notJson)).status, 429);
  const canceled = await call(rig, 'cancel', { id, metadata: { large: 'x'.repeat(16_000) } }, { headers: ANNA });
  assert.equal(canceled.result?.status.state, 'TASK_STATE_CANCELED');
});

test('open tasks are counted over all processes: one more gets 429, unless it continues an open task or another has ended', async t => {
  const rig = await openLimited(t, { ownerOpenTasksMax: 3 });
  rig.relay.onClient = (taskId, { turn }) => rig.relay.end(taskId, turn > 1 ? 'COMPLETED' : 'INPUT_REQUIRED');
  const other = await rig.another();
  const tasks = [await begun(rig, ANNA), await begun(rig, ANNA), await begun(other, ANNA)];
  await until(async () => (await post(rig, 'send', later(), { headers: ANNA })).status === 429);
  await assertRefused(await post(rig, 'stream', sendParams(userMessage('x')), { headers: ANNA }), { from: 10, to: 10 });
  await begun(rig, BERT);
  assert.equal((await call(rig, 'send', later('more', { taskId: tasks[0] }), { headers: ANNA })).error, undefined);
  await until(async () => (await post(rig, 'send', later(), { headers: ANNA })).status === 200);
});

test('a refused message does not get past the bound when it is sent again with its id', async t => {
  const rig = await openLimited(t, { ownerOpenTasksMax: 1 });
  await begun(rig, ANNA);
  const params = later('x', { contextId: 'c' });
  for (let n = 1; n <= 2; n += 1) await assertRefused(await post(rig, 'send', params, { headers: ANNA }));
});

test('webhooks are counted over all tasks and processes: one more is refused at once, a replacement is accepted', async t => {
  const rig = await openLimited(t, { ownerPushConfigsMax: 2 }, { push: true });
  const other = await rig.another();
  const [first, second, his] = [await begun(rig, ANNA), await begun(rig, ANNA), await begun(rig, BERT)];
  const params = (taskId: string, id: string, path = '') => ({ taskId, id, url: `https://hooks.example.org/${path}` });
  const set = (to: Rig, headers: Record<string, string>, ...config: [string, string, string?]) =>
    post(to, 'createPush', params(...config), { headers });
  assert.equal((await set(rig, ANNA, first, 'a')).status, 200);
  assert.equal((await set(other, ANNA, second, 'b')).status, 200);
  for (const server of [rig, other]) await assertRefused(await set(server, ANNA, second, 'c'), { from: 10, to: 10 });
  assert.equal((await set(rig, ANNA, first, 'a', 'elsewhere')).status, 200);
  assert.equal((await set(rig, BERT, his, 'a')).status, 200);
  await call(rig, 'deletePush', { taskId: first, id: 'a' }, { headers: ANNA });
  await until(async () => (await set(rig, ANNA, second, 'c')).status === 200);
});

test("at the bound of waiting work a tenant's next message gets 429, and other tenants' messages are accepted", async t => {
  const rig = await openRig(t, { authenticate, memory: { tenantItemsMax: 1 } });
  const owner = { tenant: 't', subject: 'a' };
  const work = { v: 1, taskId: 'w', contextId: 'c', turn: 1, profile: 'caipe', message: userMessage('x'), owner } as const;
  await rig.log.work.request('supervisor', work, { id: 'w' });
  await assertRefused(await post(rig, 'send', later(), { headers: caller('b', 't') }));
  await assertRefused(await post(rig, 'stream', sendParams(userMessage('x')), { headers: caller('b', 't') }));
  await begun(rig, BERT);
});

test("a tenant whose tasks fill its share of the log cannot begin another task; its open task and other tenants' tasks continue", async t => {
  const rig = await openRig(t, { authenticate, limits: { tenantStoredShare: 0.5 }, memory: { factsBytesMax: 10_000_000 } });
  rig.relay.onClient = (taskId, { turn }) => rig.relay.end(taskId, turn > 1 ? 'COMPLETED' : 'INPUT_REQUIRED');
  const [one, other] = [caller('a', 't'), caller('b', 't')];
  const id = await begun(rig, one);
  await changeSpans(rig.log.taskLists, tenantBytesKey({ tenant: 't', subject: 'z' }, 0)!, () => [[9, 5_000_000]]);
  await until(async () => (await post(rig, 'send', later(), { headers: one })).status === 429);
  await assertRefused(await post(rig, 'stream', sendParams(userMessage('x')), { headers: other }), { from: 60, to: 60 });
  await begun(rig, BERT);
  assert.equal((await call(rig, 'send', later('more', { taskId: id }), { headers: one })).error, undefined);
});

test('HTTP+JSON reports a limit as 429 RESOURCE_EXHAUSTED with Retry-After', async t => {
  const rig = await openLimited(t, { ownerMessagesPerSecond: 0.02, ownerMessagesBurst: 1 });
  const send = () => rest(rig, 'POST /message:send', { headers: ANNA, body: later() });
  assert.equal((await send()).status, 200);
  const { status, body, headers } = await send();
  assert.deepEqual([status, body.error.status, body.error.details[0].reason], [429, 'RESOURCE_EXHAUSTED', 'QUOTA_EXCEEDED']);
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d?$/);
});

test("a tenant's open tasks are bounded over all its callers: even a caller without open tasks gets 429", async t => {
  const rig = await openLimited(t, { ownerOpenTasksMax: 2, tenantLimitFactor: 2 });
  for (const subject of ['a', 'a', 'b', 'b']) await begun(rig, caller(subject, 't'));
  await assertRefused(await post(rig, 'send', later(), { headers: caller('c', 't') }));
  await begun(rig, caller('c', 'other'));
});

test('a message that could not be stored is counted once: at the bound its retry is accepted, and another message is not', async t => {
  const rig = await openLimited(t, { ownerOpenTasksMax: 1, ownerPushConfigsMax: 1 }, { push: true });
  const failOnce = (store: { [name in 'append' | 'put']?: unknown }, name: 'append' | 'put') => {
    const original = store[name];
    store[name] = async () => {
      store[name] = original;
      throw new LogUnavailable('gone');
    };
  };
  const message = later('x', { contextId: 'c' });
  failOnce(rig.log.inputs, 'append');
  assert.equal((await post(rig, 'send', message, { headers: ANNA })).status, 503);
  const { result } = await call(rig, 'send', message, { headers: ANNA });
  assert.equal(result?.task.status.state, 'TASK_STATE_SUBMITTED');
  await assertRefused(await post(rig, 'send', later(), { headers: ANNA }));
  const webhook = (id: string) => ({ taskId: result.task.id, id, url: 'https://hooks.example.org/' });
  failOnce(rig.log.pushConfigs, 'put');
  assert.equal((await post(rig, 'createPush', webhook('one'), { headers: ANNA })).status, 503);
  // The count entry is stored, and the webhook is not.
  const { put } = rig.log.pushConfigs;
  rig.log.pushConfigs.put = async (...entry) => {
    failOnce(rig.log.pushConfigs, 'put');
    return put.apply(rig.log.pushConfigs, entry);
  };
  assert.equal((await post(rig, 'createPush', webhook('one'), { headers: ANNA })).status, 503);
  rig.log.pushConfigs.put = put;
  assert.equal((await call(rig, 'createPush', webhook('one'), { headers: ANNA })).result?.id, 'one');
  await assertRefused(await post(rig, 'createPush', webhook('two'), { headers: ANNA }));
});

const LARGE = { url: `https://hooks.example.org/${'u'.repeat(2_000)}`, token: 't'.repeat(4_000) };
/** Somewhat more than the two large webhooks that a caller may have in these tests. Each has some 8,000 bytes, because secrets may be encrypted. */
const TWO_LARGE = 16_384;

test("bytes of webhooks are bounded for a caller and its tenant, over all processes; other tenants' are accepted", async t => {
  const rig = await openLimited(t, { ownerPushConfigBytesMax: TWO_LARGE, tenantLimitFactor: 1 }, { push: true });
  const other = await rig.another();
  const [eva, ute, otto] = [caller('eva', 'acme'), caller('ute', 'acme'), caller('otto', 'globex')];
  const [hers, utes, his] = [await begun(rig, eva), await begun(rig, ute), await begun(rig, otto)];
  const set = (to: Rig, headers: Record<string, string>, taskId: string, id: string, config: object = LARGE) =>
    post(to, 'createPush', { taskId, id, ...LARGE, ...config }, { headers });
  assert.equal((await set(rig, eva, hers, 'a', { token: 't' })).status, 200);
  assert.equal((await set(other, eva, hers, 'b')).status, 200);
  assert.equal((await set(rig, eva, hers, 'a')).status, 200, 'a webhook that grows within the bound');
  for (const server of [rig, other]) {
    await assertRefused(await set(server, eva, hers, 'c'), { from: 10, to: 10 });
    await assertRefused(await set(server, ute, utes, 'a'), { from: 10, to: 10 });
    const inline = { configuration: { taskPushNotificationConfig: LARGE, returnImmediately: true }, message: userMessage('x') };
    await assertRefused(await post(server, 'send', inline, { headers: ute }), { from: 10, to: 10 });
  }
  assert.equal((await set(rig, eva, hers, 'a', { url: 'https://hooks.example.org/' })).status, 200, 'a webhook that shrinks');
  assert.equal((await set(rig, otto, his, 'a')).status, 200);
});

test('a message refused by a limit does not claim its id, so that no caller can push out the ids of others', async t => {
  const limits = { ownerOpenTasksMax: 2, ownerPushConfigsMax: 1 };
  const rig = await openRig(t, { authenticate, limits, push: true, memory: { tenantItemsMax: 1 } });
  rig.relay.onClient = taskId => rig.relay.end(taskId, 'INPUT_REQUIRED');
  const first = later('x', { contextId: 'first' });
  const { result } = await call(rig, 'send', first, { headers: ANNA });
  const webhook = { taskPushNotificationConfig: { url: 'https://hooks.example.org/' }, returnImmediately: true };
  const withWebhook = (more: object) => ({ message: userMessage('x', more), configuration: webhook });
  assert.equal((await post(rig, 'send', withWebhook({ contextId: 'second' }), { headers: ANNA })).status, 200);
  const claims = () => rig.log.messageIds.revision();
  const claimed = await claims();
  const continuing = { taskId: result.task.id, contextId: 'first' };
  // No room for a further webhook, in a task that has begun.
  await assertRefused(await post(rig, 'send', withWebhook(continuing), { headers: ANNA }));
  // No room for a further task: by a message of 1.0, and by one of the April 2025 form, which names its task.
  await assertRefused(await post(rig, 'send', later('x', { contextId: 'c' }), { headers: ANNA }));
  const legacy = { id: 'chosen', message: { role: 'user', parts: [{ type: 'text', text: 'x' }] } };
  assert.equal((await post(rig, 'send', legacy, { headers: ANNA, dialect: 'legacy' })).status, 429);
  // No room in the queue.
  const owner = { tenant: 't', subject: 'a' };
  const work = { v: 1, taskId: 'w', contextId: 'c', turn: 1, profile: 'caipe', message: userMessage('x'), owner } as const;
  await rig.log.work.request('supervisor', work, { id: 'w' });
  await assertRefused(await post(rig, 'send', later('x', { contextId: 'c' }), { headers: caller('b', 't') }));
  assert.equal(await claims(), claimed);
  // A message that was accepted may still be sent again.
  const again = await call(rig, 'send', first, { headers: ANNA });
  assert.equal(again.result?.task.id, result.task.id);
  assert.equal(await claims(), claimed);
});

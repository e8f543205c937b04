import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { JsonObject } from '@hopline/a2a';
import { CallFailed, GrpcClient } from '@hopline/a2a-grpc/test-client';
import type { Authenticate } from '@hopline/a2a-server';
import { openServer } from '@hopline/a2a-server/test-kit';
import { agentCard } from '@hopline/agent-card';
import { PublishedCard } from '@hopline/agent-card/signing';
import { openGrpc } from '../../packages/a2a-grpc/src/open-grpc.ts';
import { openHttp } from '../../packages/a2a-http/src/open-http.ts';

type Headers = Readonly<Record<string, string>>;

const authenticate: Authenticate = async ({ headers }) => ({
  tenant: String(headers['x-tenant']),
  subject: String(headers['x-subject']),
});
const OWNER: Headers = { 'x-tenant': 'a', 'x-subject': 'anna' };
const STRANGERS: Record<string, Headers> = {
  'another subject of the tenant': { 'x-tenant': 'a', 'x-subject': 'bert' },
  'the same subject of another tenant': { 'x-tenant': 'b', 'x-subject': 'anna' },
};
const HOOK = 'https://hooks.example/';

/** Both bindings of one server, and a task of OWNER that waits for input, with a webhook. */
async function openBindings(t: TestContext) {
  const { server, relay, log } = openServer(t, { authenticate, push: true });
  relay.onClient = taskId => relay.end(taskId, 'INPUT_REQUIRED');
  const card = agentCard({
    name: 't',
    description: 't',
    version: '0',
    url: 'http://t/',
    skills: [],
    capabilities: { streaming: true },
  });
  const audited = async () => ({ audited: true });
  async function* lines() {
    yield '{}\n';
  }
  const exportTask = async () => lines();
  const http = openHttp(server, {
    card: new PublishedCard(() => card),
    audits: { report: audited, explain: audited },
    exportTask,
  });
  const url = await http.listen('127.0.0.1', 0);
  const grpc = openGrpc(server, { card: () => card });
  const client = new GrpcClient(`127.0.0.1:${await grpc.listen('127.0.0.1', 0)}`);
  t.after(async () => {
    client.close();
    await Promise.all([http.close(), grpc.close()]);
  });
  const rpc = (method: string, params: JsonObject, headers: Headers) =>
    exchange(`${url}/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
  const sent = await rpc(
    'message/send',
    { message: { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'x' }] } },
    OWNER,
  );
  const { id } = JSON.parse(sent.text).result as { id: string };
  await rpc('tasks/pushNotificationConfig/set', { taskId: id, pushNotificationConfig: { id: 'hook', url: HOOK } }, OWNER);
  return { url, rpc, client, relay, log, id };
}

/** An answer without the values that differ from task to task: ids and times. */
const alike = (text: string, id: string): string =>
  text.replaceAll(id, 'ID').replace(/[0-9a-f-]{36}|\d{4}-\d\d-\d\dT[\d:.]+Z/g, '*');

type Bindings = Awaited<ReturnType<typeof openBindings>>;
type Answer = { status: number; text: string };

async function exchange(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, init);
  return { status: response.status, text: await response.text() };
}

const ROLE_USER = { role: 'ROLE_USER', parts: [{ text: 'x' }] };

/** Params of the methods of a dialect that name a task. */
const RPC: Record<string, { version: Headers; methods: Record<string, (id: string) => JsonObject> }> = {
  'JSON-RPC 1.0': {
    version: { 'a2a-version': '1.0' },
    methods: {
      GetTask: id => ({ id }),
      CancelTask: id => ({ id }),
      SubscribeToTask: id => ({ id }),
      SendMessage: taskId => ({ message: { ...ROLE_USER, messageId: 'n', taskId } }),
      SendStreamingMessage: taskId => ({ message: { ...ROLE_USER, messageId: 'n', taskId } }),
      CreateTaskPushNotificationConfig: taskId => ({ taskId, id: 'other', url: HOOK }),
      GetTaskPushNotificationConfig: taskId => ({ taskId, id: 'hook' }),
      ListTaskPushNotificationConfigs: taskId => ({ taskId }),
      DeleteTaskPushNotificationConfig: taskId => ({ taskId, id: 'hook' }),
    },
  },
  'JSON-RPC 0.3': {
    version: {},
    methods: {
      'tasks/get': id => ({ id }),
      'tasks/cancel': id => ({ id }),
      'tasks/resubscribe': id => ({ id }),
      'message/send': taskId => ({ message: { messageId: 'n', role: 'user', parts: [{ kind: 'text', text: 'x' }], taskId } }),
      'message/stream': taskId => ({ message: { messageId: 'n', role: 'user', parts: [{ kind: 'text', text: 'x' }], taskId } }),
      'tasks/pushNotificationConfig/set': taskId => ({ taskId, pushNotificationConfig: { url: HOOK } }),
      'tasks/pushNotificationConfig/get': id => ({ id, pushNotificationConfigId: 'hook' }),
      'tasks/pushNotificationConfig/list': id => ({ id }),
      'tasks/pushNotificationConfig/delete': id => ({ id, pushNotificationConfigId: 'hook' }),
    },
  },
  'JSON-RPC of April 2025': {
    version: { 'a2a-version': '0.1' },
    methods: {
      'tasks/get': id => ({ id }),
      'tasks/cancel': id => ({ id }),
      'tasks/resubscribe': id => ({ id }),
      'tasks/pushNotification/get': id => ({ id }),
    },
  },
};

/** Requests of HTTP+JSON that name a task; TASK is replaced. */
const REST: Record<string, { headers: Headers; requests: [line: string, body?: JsonObject][] }> = {
  'HTTP+JSON 1.0': {
    headers: { 'a2a-version': '1.0' },
    requests: [
      ['GET /tasks/TASK'],
      ['GET /a2a/tasks/TASK'],
      ['POST /tasks/TASK:cancel'],
      ['GET /tasks/TASK:subscribe'],
      ['POST /tasks/TASK:subscribe'],
      ['POST /message:send', { message: { ...ROLE_USER, messageId: 'n', taskId: 'TASK' } }],
      ['POST /message:stream', { message: { ...ROLE_USER, messageId: 'n', taskId: 'TASK' } }],
      ['POST /tasks/TASK/pushNotificationConfigs', { url: HOOK }],
      ['GET /tasks/TASK/pushNotificationConfigs'],
      ['GET /tasks/TASK/pushNotificationConfigs/hook'],
      ['DELETE /tasks/TASK/pushNotificationConfigs/hook'],
      ['GET /tasks/TASK/audit'],
      ['GET /tasks/TASK/audit/1.1'],
      ['GET /tasks/TASK/export'],
      ['GET /a/tasks/TASK'],
      ['GET /tasks/TASK?tenant=a'],
      ['POST /a/tasks/TASK:cancel'],
    ],
  },
  'HTTP+JSON 0.3': {
    headers: {},
    requests: [
      ['GET /v1/tasks/TASK'],
      ['POST /v1/tasks/TASK:cancel', {}],
      ['GET /v1/tasks/TASK:subscribe'],
      ['POST /v1/tasks/TASK:subscribe', {}],
      ['POST /v1/message:send', { message: { messageId: 'n', role: 'ROLE_USER', content: [{ text: 'x' }], taskId: 'TASK' } }],
      ['POST /v1/tasks/TASK/pushNotificationConfigs', { config: { pushNotificationConfig: { url: HOOK } } }],
      ['GET /v1/tasks/TASK/pushNotificationConfigs'],
      ['GET /v1/tasks/TASK/pushNotificationConfigs/hook'],
      ['DELETE /v1/tasks/TASK/pushNotificationConfigs/hook'],
    ],
  },
};

const GRPC: Record<string, { version: '1.0' | '0.3'; calls: Record<string, (id: string) => JsonObject> }> = {
  'gRPC 1.0': { version: '1.0', calls: RPC['JSON-RPC 1.0']!.methods },
  'gRPC 0.3': {
    version: '0.3',
    calls: {
      GetTask: id => ({ name: `tasks/${id}` }),
      CancelTask: id => ({ name: `tasks/${id}` }),
      TaskSubscription: id => ({ name: `tasks/${id}` }),
      SendMessage: taskId => ({ request: { messageId: 'n', role: 'ROLE_USER', content: [{ text: 'x' }], taskId } }),
      GetTaskPushNotificationConfig: id => ({ name: `tasks/${id}/pushNotificationConfigs/hook` }),
      ListTaskPushNotificationConfig: id => ({ parent: `tasks/${id}` }),
      DeleteTaskPushNotificationConfig: id => ({ name: `tasks/${id}/pushNotificationConfigs/hook` }),
    },
  },
};

/** Every way to name a task: binding, operation, and a function that sends the request. */
function attempts({ url, rpc, client }: Bindings): Record<string, (id: string, caller: Headers) => Promise<Answer>> {
  const all: Record<string, (id: string, caller: Headers) => Promise<Answer>> = {};
  for (const [binding, { version, methods }] of Object.entries(RPC)) {
    for (const [method, params] of Object.entries(methods)) {
      all[`${binding}, ${method}`] = (id, caller) => rpc(method, params(id), { ...version, ...caller });
      if (/subscribe/i.test(method))
        all[`${binding}, ${method} from a cursor`] = (id, caller) =>
          rpc(method, params(id), { ...version, ...caller, 'last-event-id': '1.1' });
    }
  }
  for (const [binding, { headers, requests }] of Object.entries(REST)) {
    for (const [line, body] of requests) {
      const [method = '', path = ''] = line.split(' ');
      all[`${binding}, ${line}`] = (id, caller) =>
        exchange(url + path.replace('TASK', id), {
          method,
          headers: { ...headers, ...caller, ...(body && { 'content-type': 'application/json' }) },
          ...(body && { body: JSON.stringify(body).replace('TASK', id) }),
        });
    }
  }
  for (const [binding, { version, calls }] of Object.entries(GRPC)) {
    for (const [name, request] of Object.entries(calls)) {
      const streams = /Subscri|Streaming/.test(name);
      all[`${binding}, ${name}`] = async (id, caller) => {
        const options = { version, metadata: { ...caller } };
        try {
          const answered = streams
            ? await client.stream(name, request(id), options).rest()
            : await client.call(name, request(id), options);
          return { status: 0, text: JSON.stringify(answered) };
        } catch (error) {
          if (!(error instanceof CallFailed)) throw error;
          return { status: error.code, text: JSON.stringify([error.message, error.details]) };
        }
      };
    }
  }
  return all;
}

test('the task of another caller', async t => {
  const bindings = await openBindings(t);
  const { id, relay, log } = bindings;
  const unknown = crypto.randomUUID();
  const before = JSON.stringify(relay.aggregate(id));
  for (const [caller, headers] of Object.entries(STRANGERS)) {
    for (const [name, attempt] of Object.entries(attempts(bindings)))
      await t.test(`${name}: ${caller} gets the same answer as for an unknown task`, async () => {
        const [victim, none] = [await attempt(id, headers), await attempt(unknown, headers)];
        assert.equal(victim.status, none.status);
        assert.equal(victim.text.replaceAll(id, 'ID'), none.text.replaceAll(unknown, 'ID'));
        assert.match(victim.text, /not found/i);
      });
    await t.test(`lists of ${caller} do not contain it`, async () => {
      const { status, text } = await exchange(`${bindings.url}/tasks`, { headers: { 'a2a-version': '1.0', ...headers } });
      assert.equal(status, 200);
      assert.ok(!text.includes(id));
      assert.ok(!JSON.stringify(await bindings.client.call('ListTasks', {}, { metadata: { ...headers } })).includes(id));
    });
    const begun = [
      ['tasks/pushNotification/set', (named: string) => ({ id: named, pushNotificationConfig: { url: HOOK } })],
      ['tasks/send', (named: string) => ({ id: named, message: { role: 'user', parts: [{ type: 'text', text: 'x' }] } })],
      ['tasks/get', (named: string) => ({ id: named })],
      ['tasks/pushNotification/get', (named: string) => ({ id: named })],
    ] as const;
    for (const [method, params] of begun)
      await t.test(`${method} of ${caller} with its id is answered as with an unused id`, async () => {
        const as = { 'a2a-version': '0.1', ...headers };
        const [taken, free] = [await bindings.rpc(method, params(id), as), await bindings.rpc(method, params(unknown), as)];
        assert.equal(JSON.parse(taken.text).result.id, id);
        assert.equal(alike(taken.text, id), alike(free.text, unknown));
      });
  }
  await t.test('is unchanged, and so is its webhook', async () => {
    assert.equal(JSON.stringify(relay.aggregate(id)), before);
    assert.deepEqual(
      (await log.pushConfigs.under(id)).map(({ value }) => [value.id, value.url]),
      [['hook', HOOK]],
    );
  });
  await t.test('is served to its owner in every binding', async () => {
    for (const [name, attempt] of Object.entries(attempts(bindings)))
      if (/GetTask$|tasks\/get|GET .*TASK$/.test(name)) assert.doesNotMatch((await attempt(id, OWNER)).text, /not found/i, name);
  });
});

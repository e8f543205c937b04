import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { JsonObject } from '@hopline/a2a';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { openRig, type Rig, userMessage } from '../http-server.test-kit.ts';
import { HTTP_METHODS, REST_ROUTES } from '../rest/routes.ts';
import { type RestRequest, rest, restFrames, restResponse } from '../rest.test-kit.ts';

type Parameter = { name: string; in: string; required?: boolean; schema: JsonObject };
type Operation = {
  operationId: string;
  parameters: (Parameter | { $ref: string })[];
  requestBody?: { content: Record<string, { schema: { $ref: string } }> };
  responses: Record<string, { content: Record<string, { schema: JsonObject }> }>;
};
type Document = {
  openapi: string;
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonObject> };
};

async function documentOf(rig: Rig): Promise<Document> {
  const { status, type, body } = await rest(rig, 'GET /openapi.json', { headers: { 'a2a-version': '' } });
  assert.deepEqual([status, type], [200, 'application/json; charset=utf-8']);
  return body as Document;
}

/** Validates a value against a schema of the document. */
function checker({ components }: Document): (name: string, value: unknown) => void {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'openapi', components });
  return (name, value) => {
    const check = ajv.getSchema(`openapi#/components/schemas/${name}`);
    assert(check !== undefined, name);
    assert(check(value), `${name}: ${JSON.stringify(check.errors)} ${JSON.stringify(value)}`);
  };
}

async function openAnswering(t: TestContext): Promise<Rig> {
  const rig = await openRig(t, { push: true });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['Here', ' is']);
  return rig;
}

test('the document has exactly the routes of the server, which answers all of them', async t => {
  const rig = await openRig(t);
  const { openapi, servers, paths } = await documentOf(rig);
  assert.deepEqual([openapi, servers], ['3.1.0', [{ url: 'http://127.0.0.1' }]]);
  const documented = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map(method => `${method.toUpperCase()} ${path}`),
  );
  const routes = Object.entries(REST_ROUTES).flatMap(([path, route]) => Object.keys(route).map(method => `${method} ${path}`));
  assert.deepEqual(documented.toSorted(), routes.toSorted());
  const ids = Object.values(paths).flatMap(item => Object.values(item).map(operation => operation.operationId));
  assert.equal(new Set(ids).size, ids.length);
  for (const path of Object.keys(REST_ROUTES)) {
    for (const method of HTTP_METHODS) {
      const { status } = await rest(rig, `${method} ${path.replaceAll(/\{\w+\}/g, 'x')}`);
      assert.equal(
        status !== 405,
        `${method} ${path}` in Object.fromEntries(documented.map(one => [one, 1])),
        `${method} ${path}`,
      );
      if (status !== 405)
        assert(paths[path]![method.toLowerCase()]!.responses[status] !== undefined, `${method} ${path} ${status}`);
    }
  }
});

test('every reference of the document resolves, and every schema is valid', async t => {
  const rig = await openRig(t);
  const document = await documentOf(rig);
  const text = JSON.stringify(document);
  assert.doesNotMatch(text, /"(nullable|reason)"/);
  for (const [, path] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    const found = path!.split('/').reduce<unknown>((at, name) => (at as JsonObject | undefined)?.[name], document);
    assert(found !== undefined, path!);
  }
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  for (const [name, schema] of Object.entries(document.components.schemas)) assert(ajv.validateSchema(schema), name);
});

test('responses match the document', async t => {
  const rig = await openAnswering(t);
  const fits = checker(await documentOf(rig));
  const request = {
    message: userMessage('x', { metadata: { a: 1 } }),
    configuration: { historyLength: 1, acceptedOutputModes: null },
  };
  fits('SendMessageRequest', request);
  const sent = await rest(rig, 'POST /message:send', { body: request });
  fits('SendMessageResponse', sent.body);
  fits('Task', (await rest(rig, `GET /tasks/${sent.body.task.id}`)).body);
  fits('ListTasksResponse', (await rest(rig, 'GET /tasks?includeArtifacts=true')).body);
  const frames = await restFrames(await restResponse(rig, 'POST /message:stream', { body: { message: userMessage('y') } }));
  for (const { json } of frames) fits('StreamResponse', json);
  const path = `/tasks/${sent.body.task.id}/pushNotificationConfigs`;
  const config = { id: 'c', url: 'https://example.org/', token: null, authentication: { scheme: 'Bearer', credentials: 'x' } };
  fits('TaskPushNotificationConfig', config);
  fits('ShownPushNotificationConfig', (await rest(rig, `POST ${path}`, { body: config })).body);
  fits('ShownPushNotificationConfig', (await rest(rig, `GET ${path}/c`)).body);
  fits('ListTaskPushNotificationConfigsResponse', (await rest(rig, `GET ${path}`)).body);
  fits('Empty', (await rest(rig, `DELETE ${path}/c`)).body);
  for (const line of ['GET /tasks/x', 'GET /tasks?pageSize=0', 'PUT /tasks']) fits('Error', (await rest(rig, line)).body);
});

test('requests that the document forbids are refused, others are not', async t => {
  const rig = await openAnswering(t);
  const document = await documentOf(rig);
  const fits = checker(document);
  const message = userMessage('x');
  const bodies: [body: unknown, fitting: boolean][] = [
    [{ message }, true],
    [{ message, configuration: null, metadata: null, novelty: 1 }, true],
    [{ message: { ...message, contextId: null, extensions: null } }, true],
    [{ message: { ...message, parts: [{ data: null }] } }, true],
    [{}, false],
    [{ message: null }, false],
    [{ message: { ...message, role: 'user' } }, false],
    [{ message: { ...message, parts: [{ text: 'x', url: 'y' }] } }, false],
    [{ message, configuration: { historyLength: -1 } }, false],
  ];
  for (const [body, fitting] of bodies) {
    if (fitting) fits('SendMessageRequest', body);
    else assert.throws(() => fits('SendMessageRequest', body), assert.AssertionError);
    const fresh = typeof body === 'object' && body !== null && 'message' in body && body.message !== null;
    const sent: RestRequest = {
      body: fresh ? { ...body, message: { ...(body.message as object), messageId: crypto.randomUUID() } } : body,
    };
    assert.equal((await rest(rig, 'POST /message:send', sent)).status, fitting ? 200 : 400, JSON.stringify(body));
  }
  const parameters = document.paths['/tasks']!.get!.parameters.filter(one => 'name' in one);
  assert.deepEqual(
    parameters.map(one => one.name),
    [
      'contextId',
      'status',
      'pageSize',
      'pageToken',
      'historyLength',
      'statusTimestampAfter',
      'includeArtifacts',
      'text',
      'agent',
      'minDurationMs',
    ],
  );
  for (const { name, schema } of parameters) {
    const { minimum, maximum, enum: values = [] } = schema as { minimum?: number; maximum?: number; enum?: string[] };
    for (const allowed of [minimum, maximum, ...values].filter(value => value !== undefined)) {
      assert.equal((await rest(rig, `GET /tasks?${name}=${allowed}`)).status, 200, `${name}=${allowed}`);
    }
    for (const beyond of [minimum! - 1, maximum! + 1].filter(Number.isFinite)) {
      assert.equal((await rest(rig, `GET /tasks?${name}=${beyond}`)).status, 400, `${name}=${beyond}`);
    }
  }
});

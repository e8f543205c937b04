import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type A2AError, DIALECTS, type JsonObject, type StreamResponse } from '@hopline/a2a';
import { clientOf, read } from './procedures.test-kit.ts';
import { PROCEDURES, SERVICE_0_3, SERVICE_1_0 } from './services.ts';

type Golden = { about: string; canonical: StreamResponse; proto03: JsonObject; wire: { '1.0': string; '0.3': string } };

/**
 * The bytes were made by Google's protobuf runtime for Python, from the definitions in the conformance kit (1.0) and in a2a-sdk
 * 0.3.26 (0.3).
 */
const GOLDEN = JSON.parse(readFileSync(new URL('../golden/stream-responses.json', import.meta.url), 'utf8')) as Golden[];

const SERVICES = { '1.0': SERVICE_1_0, '0.3': SERVICE_0_3 } as const;

for (const { about, canonical, proto03, wire } of GOLDEN) {
  for (const version of ['1.0', '0.3'] as const) {
    test(`${version} golden: ${about} [S3-29]`, () => {
      const { procedure } = clientOf(SERVICES[version], 'SendStreamingMessage');
      const bytes = procedure.response(DIALECTS[version].encodeEvent(canonical));
      const known = Buffer.from(wire[version], 'base64');
      const type = `${SERVICES[version].replace('A2AService', 'StreamResponse')}`;
      assert.deepEqual(read(type, bytes), read(type, known));
      // Only the lengths are compared, because an encoder may write the entries of a map in any order.
      assert.equal(bytes.length, known.length);
      assert.deepEqual(read(type, bytes), version === '1.0' ? canonical : proto03);
    });
  }
}

test('every procedure of both services maps to a method of its dialect', () => {
  const unknown = PROCEDURES.filter(({ dialect, method }) => !Object.values(dialect.methods).includes(method));
  assert.deepEqual(unknown, []);
  const names = PROCEDURES.map(({ path }) => path);
  assert.equal(names.length, 21);
  assert.deepEqual(
    PROCEDURES.filter(({ streams }) => streams).map(({ path }) => path),
    [
      '/lf.a2a.v1.A2AService/SendStreamingMessage',
      '/lf.a2a.v1.A2AService/SubscribeToTask',
      '/a2a.v1.A2AService/SendStreamingMessage',
      '/a2a.v1.A2AService/TaskSubscription',
    ],
  );
});

test('a 1.0 request is its ProtoJSON, and keeps fields set to their defaults', () => {
  const { procedure, write } = clientOf(SERVICE_1_0, 'SendMessage');
  const json = {
    tenant: 'acme',
    message: { messageId: 'm', role: 'ROLE_USER', parts: [{ data: null }, { text: '' }] },
    configuration: { historyLength: 0, returnImmediately: true },
    metadata: { __proto__x: 1 },
  };
  assert.deepEqual(procedure.params(write(json)), json);
});

test('a 0.3 request becomes the JSON-RPC request [S1-5]', () => {
  const { procedure, write } = clientOf(SERVICE_0_3, 'SendMessage');
  const params = procedure.params(
    write({
      message: {
        messageId: 'm',
        role: 'ROLE_USER',
        content: [{ text: 'x' }, { file: { fileWithUri: 'https://x', mimeType: 'a/b' } }],
      },
      configuration: { acceptedOutputModes: ['text/plain'], historyLength: 3, pushNotification: { id: 'p', url: 'https://y' } },
    }),
  );
  assert.deepEqual(DIALECTS['0.3'].decodeSend(params), {
    message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }, { url: 'https://x', mediaType: 'a/b' }] },
    blocking: false,
    historyLength: 3,
    acceptedOutputModes: ['text/plain'],
    push: { id: 'p', url: 'https://y' },
  });
});

test('a 0.3 send without a configuration blocks, and a history length of 0 means not set', () => {
  const { procedure, write } = clientOf(SERVICE_0_3, 'SendMessage');
  const message = { messageId: 'm', role: 'ROLE_USER', content: [{ text: 'x' }] };
  const requestOf = (json: object) => DIALECTS['0.3'].decodeSend(procedure.params(write({ message, ...json })));
  assert.equal(requestOf({}).blocking, true);
  assert.equal(requestOf({ configuration: { blocking: true } }).blocking, true);
  assert.equal(requestOf({ configuration: {} }).blocking, false);
  assert.equal(requestOf({ configuration: {} }).historyLength, undefined);
});

test('0.3 resource names become ids', () => {
  const paramsOf = (name: string, request: object) => {
    const { procedure, write } = clientOf(SERVICE_0_3, name);
    return procedure.params(write(request));
  };
  assert.deepEqual(paramsOf('GetTask', { name: 'tasks/t-1', historyLength: 2 }), { id: 't-1', historyLength: 2 });
  assert.deepEqual(paramsOf('CancelTask', { name: 'tasks/t-1' }), { id: 't-1' });
  assert.deepEqual(paramsOf('TaskSubscription', { name: 'tasks/t-1' }), { id: 't-1' });
  const config = { pushNotificationConfig: { url: 'https://x', token: 'k', authentication: { schemes: ['Bearer'] } } };
  const created = { taskId: 't', pushNotificationConfig: { ...config.pushNotificationConfig, id: 'c' } };
  assert.deepEqual(paramsOf('CreateTaskPushNotificationConfig', { parent: 'tasks/t', configId: 'c', config }), created);
  const ids = { id: 't', pushNotificationConfigId: 'c' };
  for (const name of ['GetTaskPushNotificationConfig', 'DeleteTaskPushNotificationConfig']) {
    assert.deepEqual(paramsOf(name, { name: 'tasks/t/pushNotificationConfigs/c' }), ids);
  }
  assert.deepEqual(paramsOf('ListTaskPushNotificationConfig', { parent: 'tasks/t' }), { id: 't' });
});

test('an invalid 0.3 resource name is refused, and not quoted', () => {
  for (const name of ['', 't-1', 'tasks/', 'tasks/a/b', 'task/a', 'tasks/secret/pushNotificationConfigs']) {
    for (const rpc of ['GetTask', 'CancelTask', 'TaskSubscription', 'GetTaskPushNotificationConfig']) {
      const { procedure, write } = clientOf(SERVICE_0_3, rpc);
      const refused = (error: A2AError) => error.code === 'INVALID_PARAMS' && !error.message.includes('secret');
      assert.throws(() => procedure.params(write({ name })), refused);
    }
  }
});

test('0.3 push configurations get their resource names', () => {
  const pushNotificationConfig = { id: 'c', url: 'https://x', authentication: { schemes: ['Bearer'], credentials: '***' } };
  const set = clientOf(SERVICE_0_3, 'CreateTaskPushNotificationConfig');
  const wire = { name: 'tasks/t/pushNotificationConfigs/c', pushNotificationConfig };
  assert.deepEqual(set.read(set.procedure.response({ taskId: 't', pushNotificationConfig })), wire);
  const list = clientOf(SERVICE_0_3, 'ListTaskPushNotificationConfig');
  assert.deepEqual(list.read(list.procedure.response([{ taskId: 't', pushNotificationConfig }])), { configs: [wire] });
  const gone = clientOf(SERVICE_0_3, 'DeleteTaskPushNotificationConfig');
  assert.equal(gone.procedure.response(null).length, 0);
});

test('a card for all versions decodes with the definition of each version', () => {
  const card = {
    name: 'A',
    description: 'B',
    version: '1',
    supportedInterfaces: [{ url: 'https://x', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    url: 'https://x',
    preferredTransport: 'JSONRPC',
    protocolVersion: '0.3.0',
    additionalInterfaces: [{ url: 'x:1', transport: 'GRPC' }],
    capabilities: { streaming: true, pushNotifications: true, stateTransitionHistory: true, extendedAgentCard: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 's', name: 'S', description: 'T', tags: ['u'], security: [{ k: [] }] }],
    security: [{ o: ['read'] }],
    securitySchemes: {
      k: { type: 'apiKey', in: 'header', name: 'x-key' },
      h: { type: 'http', scheme: 'Bearer', bearerFormat: 'JWT' },
      o: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: 'https://t', scopes: { read: 'r' } } } },
      i: { type: 'openIdConnect', openIdConnectUrl: 'https://i' },
      m: { type: 'mutualTLS', description: 'd' },
    },
  };
  const old = clientOf(SERVICE_0_3, 'GetAgentCard');
  const { supportedInterfaces: _for10, capabilities: _all, ...same } = card;
  assert.deepEqual(old.read(old.procedure.response(card)), {
    ...same,
    capabilities: { streaming: true, pushNotifications: true },
    skills: [{ ...card.skills[0], security: [{ schemes: { k: {} } }] }],
    security: [{ schemes: { o: { list: ['read'] } } }],
    securitySchemes: {
      k: { apiKeySecurityScheme: { location: 'header', name: 'x-key' } },
      h: { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } },
      o: { oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: 'https://t', scopes: { read: 'r' } } } } },
      i: { openIdConnectSecurityScheme: { openIdConnectUrl: 'https://i' } },
      m: { mtlsSecurityScheme: { description: 'd' } },
    },
  });
  const { security: _s, securitySchemes: _t, ...plain } = card;
  const now = clientOf(SERVICE_1_0, 'GetExtendedAgentCard');
  const got = now.read(now.procedure.response(plain));
  assert.deepEqual(got.supportedInterfaces, card.supportedInterfaces);
  assert.deepEqual(got.capabilities, { streaming: true, pushNotifications: true, extendedAgentCard: true });
});

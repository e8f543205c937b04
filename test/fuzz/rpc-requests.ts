import { DIALECT_NAMES, DIALECTS, type DialectName, type JsonObject, OPERATIONS, type Operation } from '@hopline/a2a';
import fc from 'fast-check';
import { headerFields } from './header-fields.ts';
import { damaged, HOSTILE, mutated, textOf, treeOf } from './json-tree.ts';
import { ENDED, FRESH, PLANTED, WAITING } from './placeholders.ts';

/** JSON-RPC in its three dialects: each method with valid and nearly valid params. */

const webhook = { id: 'hook', url: 'https://hooks.example.org/a2a', token: PLANTED };
const scheme = { scheme: 'Bearer', credentials: PLANTED };
const schemes = { schemes: ['Bearer'], credentials: PLANTED };

const PARTS: Record<DialectName, JsonObject[]> = {
  '1.0': [
    { text: PLANTED, metadata: { a: { b: [1] } } },
    { raw: 'AAE=', filename: 'f', mediaType: 'image/png' },
    { url: 'https://h/f' },
    { data: { a: null } },
  ],
  '0.3': [
    { kind: 'text', text: PLANTED, metadata: { a: { b: [1] } } },
    { kind: 'file', file: { bytes: 'AAE=', name: 'f', mimeType: 'image/png' } },
    { kind: 'file', file: { uri: 'https://h/f' } },
    { kind: 'data', data: { a: 1 } },
  ],
  legacy: [
    { type: 'text', text: PLANTED },
    { type: 'file', file: { bytes: 'AAE=', name: 'f', mimeType: 'image/png' } },
    { type: 'data', data: { a: 1 } },
  ],
};

const about = {
  contextId: FRESH,
  metadata: { correlationId: 'c', agent: 'counter' },
  extensions: ['https://e/'],
  referenceTaskIds: ['t'],
};

const SENDS: Record<DialectName, JsonObject> = {
  '1.0': {
    message: { messageId: FRESH, role: 'ROLE_USER', parts: PARTS['1.0'], ...about },
    configuration: {
      acceptedOutputModes: ['text/plain'],
      historyLength: 1,
      returnImmediately: true,
      taskPushNotificationConfig: { ...webhook, authentication: scheme },
    },
    metadata: { requestedBy: 'me' },
  },
  '0.3': {
    message: { kind: 'message', messageId: FRESH, role: 'user', parts: PARTS['0.3'], ...about },
    configuration: {
      acceptedOutputModes: ['text/plain'],
      historyLength: 1,
      blocking: false,
      pushNotificationConfig: { ...webhook, authentication: schemes },
    },
    metadata: { requestedBy: 'me' },
  },
  legacy: {
    id: FRESH,
    sessionId: FRESH,
    message: { role: 'user', parts: PARTS.legacy, metadata: { a: 1 } },
    acceptedOutputModes: ['text/plain'],
    historyLength: 1,
    pushNotification: { ...webhook, authentication: schemes },
    metadata: { correlationId: 'c' },
  },
};

/** A message to a waiting task, and one to an ended task. */
function follows(name: DialectName, task: string): JsonObject {
  if (name === 'legacy') return { ...SENDS.legacy, id: task, sessionId: undefined };
  const { message, ...rest } = SENDS[name];
  return { ...rest, message: { ...(message as JsonObject), contextId: undefined, taskId: task } };
}

function pushParams(name: DialectName, task: string): Partial<Record<Operation, JsonObject>> {
  if (name === '1.0') {
    const one = { taskId: task, id: 'hook' };
    return {
      createPush: { taskId: task, ...webhook, authentication: scheme },
      getPush: one,
      deletePush: one,
      listPush: { taskId: task, pageSize: 1, pageToken: 'aG9vaw' },
    };
  }
  const one = { id: task, pushNotificationConfigId: 'hook' };
  const configuration = { ...webhook, authentication: schemes };
  const createPush =
    name === 'legacy'
      ? { id: task, pushNotificationConfig: configuration }
      : { taskId: task, pushNotificationConfig: configuration };
  return { createPush, getPush: one, deletePush: one, listPush: { id: task } };
}

/** Valid params of each operation of a dialect. */
export function goldenParams(name: DialectName, operation: Operation): JsonObject[] {
  const tasks = [WAITING, ENDED, 'unknown'];
  const push = (task: string) => pushParams(name, task)[operation]!;
  switch (operation) {
    case 'send':
    case 'stream':
      return [SENDS[name], follows(name, WAITING), follows(name, ENDED)];
    case 'get':
      return tasks.map(id => ({ id, historyLength: 2 }));
    case 'cancel':
      return tasks.map(id => ({ id, metadata: { why: 'x' } }));
    case 'subscribe':
      return tasks.map(id => ({ id }));
    case 'list':
      return [
        { contextId: 'c', status: 'TASK_STATE_INPUT_REQUIRED', pageSize: 2, pageToken: 'MS5h', historyLength: 1 },
        { statusTimestampAfter: '2026-01-02T03:04:05.006Z', includeArtifacts: true },
      ];
    case 'extendedCard':
      return [{}];
    default:
      return tasks.map(push);
  }
}

export type FuzzedRpc = { body: Uint8Array; path: string; headers: Record<string, string> };

const VERSIONS: Record<DialectName, string[]> = {
  '1.0': ['1.0', '1.0.3', ' 1.0 '],
  '0.3': ['0.3', '', '0.3.0'],
  legacy: ['0.1', ''],
};

const HEAD = { jsonrpc: '2.0', id: 'the-id' };

/** Envelopes, mostly valid, so that the params are under test. */
function envelope(method: string, params: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const fitting = params.map(text => `{"jsonrpc":"2.0","id":7,"method":${JSON.stringify(method)},"params":${text}}`);
  const batch = fc.array(fitting, { maxLength: 3 }).map(all => `[${all.join(',')}]`);
  const id = fc
    .constantFrom(...HOSTILE)
    .map(value => `{"jsonrpc":"2.0","id":${value},"method":${JSON.stringify(method)},"params":{}}`);
  const broken = mutated({ ...HEAD, method, params: { id: WAITING } });
  const twice = params.map(
    text => `{"id":1,"id":2,"method":"tasks/get","method":${JSON.stringify(method)},"params":{},"params":${text}}`,
  );
  return fc.oneof({ weight: 12, arbitrary: fitting }, ...[batch, id, broken, twice].map(arbitrary => ({ weight: 1, arbitrary })));
}

export function fuzzedRpc(name: DialectName, operation: Operation): fc.Arbitrary<FuzzedRpc> {
  const method = DIALECTS[name].methods[operation]!;
  const params = fc.oneof(...goldenParams(name, operation).map(golden => mutated(golden)));
  const wrong = fc.constantFrom(...HOSTILE);
  const body = damaged(envelope(method, fc.oneof({ weight: 12, arbitrary: params }, { weight: 1, arbitrary: wrong })));
  const version = fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...VERSIONS[name]) },
    { weight: 1, arbitrary: fc.constantFrom('2.0', '1.0, 0.3', 'x', '01.0', '1.0.x', '9'.repeat(3_000)) },
  );
  const path = fc.constantFrom('/', '/', '/a2a', '/?cursor=1.1', '/?A2A-Version=1.0&A2A-Version=0.3', '/?%00=1');
  return fc.record({ body, path, version, more: headerFields }).map(({ version, more, ...rest }) => ({
    ...rest,
    headers: { 'content-type': 'application/json', 'a2a-version': version, ...more },
  }));
}

/** Valid requests of a dialect; each succeeds, or fails for the state of its task. */
export const RPC_METHODS: { name: DialectName; operation: Operation }[] = DIALECT_NAMES.flatMap(name =>
  OPERATIONS.filter(operation => DIALECTS[name].methods[operation] !== undefined).map(operation => ({ name, operation })),
);

export function goldenRpc(name: DialectName, operation: Operation, params: JsonObject): string {
  return textOf(treeOf({ ...HEAD, method: DIALECTS[name].methods[operation], params: JSON.parse(JSON.stringify(params)) }));
}

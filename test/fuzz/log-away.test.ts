import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DIALECTS, type JsonObject, type Operation } from '@hopline/a2a';
import { type Log, LogUnavailable } from '@hopline/log';
import { CallFailed, type GrpcClient } from '../../packages/a2a-grpc/src/grpc-client.test-kit.ts';
import { openRig } from '../../packages/a2a-grpc/src/rig.test-kit.ts';
import { SERVICE_0_3, SERVICE_1_0 } from '../../packages/a2a-grpc/src/services.ts';
import { REST_ROUTES, REST_ROUTES_03 } from '../../packages/a2a-http/src/rest/routes.ts';
import { Exchange, type Received, type Sent } from './exchange.ts';
import { ANSWER_MS_MAX } from './fuzz-settings.ts';
import { grpcTargets } from './grpc-requests.ts';
import { assertHarmless, restOutcome, rpcOutcome } from './invariants.ts';
import { openMemoryServers } from './memory-servers.ts';
import { filled, PLANTED, WAITING } from './placeholders.ts';
import { GOLDEN_REST_03 } from './rest-requests-03.ts';
import { goldenParams, goldenRpc, RPC_METHODS } from './rpc-requests.ts';

const VERSION = { '1.0': '1.0', '0.3': '0.3', legacy: '0.1' } as const;
const json = { 'content-type': 'application/json' };
/** True where only an issued page token would be valid. */
const isPageTokenRefused = (operation: string | undefined, reason: string | undefined) =>
  operation === 'list' && reason === 'INVALID_PARAMS';

const READERS = ['last', 'read', 'get', 'under', 'watch', 'follow', 'append', 'put', 'create', 'update', 'delete'];

/** Makes all operations of a process's log fail. */
function loseLog(log: Log): void {
  for (const part of Object.values(log) as unknown[]) {
    if (typeof part !== 'object' || part === null) continue;
    const methods = part as Record<string, unknown>;
    for (const name of READERS.filter(one => typeof methods[one] === 'function')) {
      methods[name] = () => {
        throw new LogUnavailable('nats://user:PLANTED-SECRET@broker:4222 did not answer');
      };
    }
  }
}

async function openWithoutLog(t: TestContext) {
  const servers = await openMemoryServers(t, { limits: { freshMsMax: 100 } });
  const exchange = new Exchange();
  t.after(() => exchange.close());
  const known = await servers.known();
  const { url, log } = servers.replicas[0];
  loseLog(log);
  const ask = async (sent: Sent, about: string): Promise<Received> => {
    const received = await exchange.send(url, sent);
    assertHarmless(received, false, about);
    return received;
  };
  return { known, ask };
}

test('without the log each operation of each dialect is 503 with Retry-After, and discloses nothing more [S4-33]', async t => {
  const { known, ask } = await openWithoutLog(t);
  for (const { name, operation } of RPC_METHODS) {
    for (const params of goldenParams(name, operation)) {
      const body = filled(goldenRpc(name, operation, params), known);
      const about = `${name} ${operation} ${body}`;
      const received = await ask({ method: 'POST', path: '/', headers: { ...json, 'a2a-version': VERSION[name] }, body }, about);
      const { reason } = await rpcOutcome(received, 'the-id', about);
      if (operation === 'extendedCard') assert.notEqual(reason, 'UNAVAILABLE');
      else if (name === '1.0' && isPageTokenRefused(operation, reason)) continue;
      else assert.deepEqual([received.isStream ? 503 : received.status, reason], [503, 'UNAVAILABLE'], about);
    }
  }
});

/** The operation of a JSON-RPC method; 1.0 has the same in each binding. */
function operationNamed(name: string): Operation {
  const found = Object.entries(DIALECTS['1.0'].methods).find(([, method]) => method === name);
  assert.ok(found, name);
  return found[0] as Operation;
}

/** Each route of HTTP+JSON 1.0 for the waiting task, with valid params. */
function restRequests(): (Sent & { operation: Operation })[] {
  return Object.entries(REST_ROUTES).flatMap(([path, route]) =>
    Object.entries(route).flatMap(([method, name]) => {
      const operation = operationNamed(name);
      const at = path.replace('{taskId}', WAITING).replace('{id}', path.includes('{taskId}') ? 'hook' : WAITING);
      const bodies = method === 'POST' ? goldenParams('1.0', operation).slice(0, 2) : [undefined];
      return bodies.map(params => ({
        method,
        path: at,
        operation,
        headers: { 'a2a-version': '1.0', ...(params && json) },
        body: params && JSON.stringify(bodyOf(operation, params)),
      }));
    }),
  );
}

/** Omits body members that are in the path. */
function bodyOf(operation: Operation, params: JsonObject): JsonObject {
  const { id: _id, taskId: _taskId, ...rest } = params;
  if (operation === 'send' || operation === 'stream') return params;
  return operation === 'createPush' ? { ...rest, id: 'hook' } : rest;
}

test('without the log each route of HTTP+JSON 1.0 is 503 with Retry-After, except the card, which does not need it [S4-33]', async t => {
  const { known, ask } = await openWithoutLog(t);
  for (const { operation, ...request } of restRequests()) {
    const sent = { ...request, path: filled(request.path, known), body: request.body && filled(String(request.body), known) };
    const about = `${sent.method} ${sent.path} ${sent.body}`;
    const received = await ask(sent, about);
    const { reason } = await restOutcome(received, about);
    if (operation === 'extendedCard') assert.notEqual(reason, 'UNAVAILABLE');
    else assert.deepEqual([received.status, reason, received.isStream], [503, 'UNAVAILABLE', false], `${about} ${received.text}`);
  }
});

test('without the log each route of HTTP+JSON 0.3 is 503 with Retry-After, except the card [S4-33]', async t => {
  const { known, ask } = await openWithoutLog(t);
  const asked = new Set<string>();
  for (const { method, path, bodies = [undefined] } of GOLDEN_REST_03) {
    asked.add(
      `${method} ${path
        .replace(/\?.*/, '')
        .replace(/tasks\/[\w-]+/, 'tasks/{}')
        .replace(/Configs\/\w+/, 'Configs/{}')}`,
    );
    for (const made of bodies) {
      const body = made && filled(JSON.stringify(made), known);
      const about = `${method} ${path} ${body}`;
      const headers = { 'a2a-version': '0.3', ...(body !== undefined && json) };
      const received = await ask({ method, path: filled(path, known), headers, body }, about);
      const { reason } = await restOutcome(received, about);
      if (path === '/v1/card' || path === '/agent/authenticatedExtendedCard') assert.notEqual(reason, 'UNAVAILABLE');
      else
        assert.deepEqual([received.status, reason, received.isStream], [503, 'UNAVAILABLE', false], `${about} ${received.text}`);
    }
  }
  const routes = Object.entries(REST_ROUTES_03).flatMap(([path, route]) =>
    Object.keys(route).map(method => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`),
  );
  assert.deepEqual([...asked].toSorted(), routes.toSorted());
});

async function failureOf(
  client: GrpcClient,
  name: string,
  target: { streams: boolean; version: '1.0' | '0.3' },
  request: unknown,
) {
  const options = { version: target.version, deadline: ANSWER_MS_MAX };
  if (target.streams) return client.stream(name, request, options).failure();
  const answer = await client.call(name, request, options).catch(thrown => thrown);
  return answer instanceof CallFailed ? answer : undefined;
}

test('without the log each procedure of both gRPC services is UNAVAILABLE with RetryInfo, except the cards [S4-33]', async t => {
  const first = await openRig(t, { push: true, limits: { freshMsMax: 100 } });
  const sent = {
    message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] },
    configuration: { returnImmediately: true },
  };
  const waiting: string = (await first.client().call('SendMessage', sent)).task.id;
  const rig = await first.another();
  const client = rig.client();
  const targets = grpcTargets(text => filled(text, { waiting, ended: 'unknown' }));
  loseLog(rig.log);
  for (const { path, streams, requests } of targets) {
    const [, service, name] = path.split('/') as [string, string, string];
    assert.ok(service === SERVICE_1_0 || service === SERVICE_0_3);
    const version = service === SERVICE_1_0 ? '1.0' : '0.3';
    for (const request of requests) {
      const about = `${path} ${JSON.stringify(request)}`;
      const failure = await failureOf(client, name, { streams, version }, request);
      if (name === 'GetAgentCard' || name === 'GetExtendedAgentCard') {
        assert.notEqual(failure?.code, status.UNAVAILABLE, about);
        continue;
      }
      if (isPageTokenRefused(name === 'ListTasks' ? 'list' : undefined, failure?.details[0]?.reason)) continue;
      assert.equal(failure?.code, status.UNAVAILABLE, `${about} ${failure?.message}`);
      assert.deepEqual(failure.details.map(detail => detail.retryDelay).filter(Boolean), ['1s'], about);
      assert.doesNotMatch(`${failure.message} ${JSON.stringify(failure.details)}`, new RegExp(`${PLANTED}|nats:`), about);
    }
  }
  assert.equal(targets.length, 21);
});

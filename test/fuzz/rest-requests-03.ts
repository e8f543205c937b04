import type { JsonObject } from '@hopline/a2a';
import fc from 'fast-check';
import { headerFields } from './header-fields.ts';
import { damaged, mutated } from './json-tree.ts';
import { ENDED, FRESH, PLANTED, WAITING } from './placeholders.ts';
import type { FuzzedRest } from './rest-requests.ts';

/** HTTP+JSON of 0.3, without an OpenAPI document: paths of [A2A 0.3] section 3.5.6, with ProtoJSON bodies. */

const config = {
  id: 'hook',
  url: 'https://hooks.example.org/a2a',
  token: PLANTED,
  authentication: { schemes: ['Bearer'], credentials: PLANTED },
};

const message = {
  messageId: FRESH,
  contextId: FRESH,
  role: 'ROLE_USER',
  content: [
    { text: PLANTED, metadata: { a: { b: [1] } } },
    { file: { fileWithBytes: 'AAE=', mimeType: 'image/png', name: 'f' } },
    { file: { fileWithUri: 'https://h/f' } },
    { data: { data: { a: 1 } } },
  ],
  metadata: { correlationId: 'c' },
  extensions: ['https://e/'],
};
const configuration = { acceptedOutputModes: ['text/plain'], historyLength: 1, blocking: false, pushNotification: config };

type Golden = { method: string; path: string; bodies?: JsonObject[] };

const send: JsonObject[] = [
  { message, configuration, metadata: { a: 1 } },
  { request: { ...message, contextId: '', taskId: WAITING }, configuration },
  { message: { ...message, contextId: '', taskId: ENDED }, configuration },
];

function ofTask(task: string): Golden[] {
  const at = `/v1/tasks/${task}`;
  const named = {
    parent: at,
    configId: 'hook',
    config: { name: `${at}/pushNotificationConfigs/hook`, pushNotificationConfig: config },
  };
  return [
    { method: 'GET', path: `${at}?historyLength=1` },
    { method: 'POST', path: `${at}:cancel`, bodies: [{ name: at }] },
    { method: 'GET', path: `${at}:subscribe` },
    { method: 'POST', path: `${at}:subscribe`, bodies: [{ name: at }] },
    { method: 'POST', path: `${at}/pushNotificationConfigs`, bodies: [named, { pushNotificationConfig: config }, config] },
    { method: 'GET', path: `${at}/pushNotificationConfigs` },
    { method: 'GET', path: `${at}/pushNotificationConfigs/hook` },
    { method: 'DELETE', path: `${at}/pushNotificationConfigs/hook` },
  ];
}

/** Each route with valid requests. */
export const GOLDEN_REST_03: Golden[] = [
  { method: 'POST', path: '/v1/message:send', bodies: send },
  { method: 'POST', path: '/v1/message:stream', bodies: send },
  { method: 'GET', path: '/v1/tasks?pageSize=2&status=TASK_STATE_WORKING' },
  { method: 'GET', path: '/v1/card' },
  { method: 'GET', path: '/agent/authenticatedExtendedCard' },
  ...[WAITING, ENDED, 'unknown'].flatMap(ofTask),
];

export const fuzzedRest03: fc.Arbitrary<FuzzedRest> = fc
  .constantFrom(...GOLDEN_REST_03)
  .chain(({ method, path, bodies = [] }) => {
    const body = bodies.length === 0 ? fc.constant(undefined) : fc.oneof(...bodies.map(one => damaged(mutated(one))));
    const verb = fc.oneof(
      { weight: 12, arbitrary: fc.constant(method) },
      { weight: 1, arbitrary: fc.constantFrom('PUT', 'QUERY', 'DELETE', 'POST') },
    );
    const odd = fc.oneof(
      { weight: 12, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: fc.constantFrom('%zz', ':fly', '/', '%2f..', '?tenant=x') },
    );
    const version = fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom('', '0.3') },
      { weight: 1, arbitrary: fc.constantFrom('1.0', '2.0', '0.1') },
    );
    return fc.record({ body, verb, odd, version, more: headerFields }).map(made => ({
      method: made.verb,
      path: path + made.odd,
      headers: {
        ...(made.version !== '' && { 'a2a-version': made.version }),
        ...(made.body && { 'content-type': 'application/json' }),
        ...made.more,
      },
      body: made.body,
      fits: false,
    }));
  });

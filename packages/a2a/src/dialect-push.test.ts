import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { DIALECTS } from './dialects.ts';
import { A2AError } from './errors.ts';
import type { JsonObject } from './json-value.ts';
import type { CreatePushRequest, NewPushConfig, PushConfig } from './requests.ts';
import { PUSH_CONFIG_ID_CHARS_MAX, PUSH_SCHEME_CHARS_MAX, PUSH_SECRET_CHARS_MAX, PUSH_URL_CHARS_MAX } from './schema/limits.ts';
import type { Message } from './types.ts';
import { DIALECT_NAMES, type DialectName } from './version.ts';

type Case = {
  about: string;
  dialect: DialectName;
  create: JsonObject;
  request: CreatePushRequest;
  shown: JsonObject;
  list?: unknown;
  deleted?: unknown;
};

const cases = JSON.parse(readFileSync(new URL('../golden/push.json', import.meta.url), 'utf8')) as Case[];
const wire = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

for (const { about, dialect, create, request, shown, list, deleted } of cases) {
  test(`golden: ${about} [C-21]`, () => {
    const { push, methods } = DIALECTS[dialect];
    assert.deepEqual(push.decodeCreate(create), request);
    const { taskId, config } = request;
    const stored: PushConfig = { id: taskId, taskId, ...config };
    assert.deepEqual(wire(push.encode(stored)), shown);
    assert.equal(list === undefined, methods.listPush === undefined);
    if (list === undefined) return;
    assert.deepEqual(wire(push.encodeList([stored], 'next')), list);
    assert.deepEqual(push.deleted, deleted);
  });
}

const ascii = fc.string({
  unit: fc.integer({ min: 0x20, max: 0x7e }).map(code => String.fromCharCode(code)),
  minLength: 1,
  maxLength: 40,
});
const schemes = fc.constantFrom('Bearer', 'Basic', 'a!#$%&~z');
const config: fc.Arbitrary<NewPushConfig> = fc.record(
  {
    url: fc.webUrl({ withQueryParameters: true }),
    id: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter(id => id.length <= PUSH_CONFIG_ID_CHARS_MAX),
    token: ascii,
    authentication: fc.record({ scheme: schemes, credentials: ascii }, { requiredKeys: ['scheme'], noNullPrototype: true }),
  },
  { requiredKeys: ['url'], noNullPrototype: true },
);

for (const name of DIALECT_NAMES) {
  test(`${name}: an inline configuration is decoded [S4-22]`, () => {
    const dialect = DIALECTS[name];
    const message: Message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
    fc.assert(
      fc.property(config, push => {
        const params = wire(dialect.encodeSend({ message, chosenTaskId: 't', blocking: true, push }));
        const { id: _id, ...withoutId } = push;
        assert.deepEqual(dialect.decodeSend(params).push, name === 'legacy' ? withoutId : push);
      }),
    );
  });

  test(`${name}: no response contains a secret, whatever the configuration is [C-21]`, () => {
    const { push } = DIALECTS[name];
    fc.assert(
      fc.property(config, ({ token: _token, authentication: _authentication, ...rest }) => {
        const secrets = {
          token: 'SECRET-1',
          authentication: { scheme: 'Bearer', credentials: 'SECRET-2' },
        };
        const stored: PushConfig = { id: 'c', taskId: 't', ...rest, ...secrets };
        const shown = JSON.stringify([push.encode(stored), push.encodeList([stored, stored], '')]);
        assert.doesNotMatch(shown, /SECRET|"token"|"credentials"/);
        assert.match(shown, /Bearer/);
      }),
    );
  });
}

test('the inline example of S4 is decoded [S4-22]', () => {
  const message = { role: 'user', parts: [{ type: 'text', text: 'x' }] };
  const pushNotification = { url: 'https://example.org/hook', token: 't', authentication: { schemes: ['bearer'] } };
  const { push } = DIALECTS.legacy.decodeSend({ id: 'task-1', message, pushNotification });
  assert.deepEqual(push, { url: 'https://example.org/hook', token: 't', authentication: { scheme: 'bearer' } });
});

test('an inline configuration is decoded by its protobuf names, and its task id is ignored', () => {
  const message = { message_id: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
  const configuration = { task_push_notification_config: { task_id: 'ignored', url: 'https://example.org/' } };
  assert.deepEqual(DIALECTS['1.0'].decodeSend({ message, configuration }).push, { url: 'https://example.org/' });
});

test('an inline configuration in the member of another version is refused, because without its webhook the client would wait in vain', () => {
  const parts10 = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
  const parts03 = { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'x' }] };
  const push = { url: 'https://example.org/' };
  for (const member of ['pushNotificationConfig', 'push_notification_config']) {
    const params = (value: unknown) => ({ message: parts10, configuration: { [member]: value } });
    assert.throws(
      () => DIALECTS['1.0'].decodeSend(params(push)),
      isRefusal(/1\.0 has the webhook in configuration\.taskPushNotificationConfig/),
    );
    assert.equal(DIALECTS['1.0'].decodeSend(params(null)).push, undefined);
    const both = { message: parts10, configuration: { [member]: push, taskPushNotificationConfig: push } };
    assert.deepEqual(DIALECTS['1.0'].decodeSend(both).push, push);
  }
  const params = { message: parts03, configuration: { taskPushNotificationConfig: push } };
  assert.throws(
    () => DIALECTS['0.3'].decodeSend(params),
    isRefusal(/0\.3 has the webhook in configuration\.pushNotificationConfig/),
  );
});

test('schemes without a name are dropped; credentials without a scheme are refused', () => {
  const decode = (authentication: unknown) =>
    DIALECTS['0.3'].push.decodeCreate({ taskId: 't', pushNotificationConfig: { url: 'http://h/', authentication } }).config;
  for (const empty of [undefined, null, { schemes: [] }, { schemes: [''], credentials: '' }]) {
    assert.deepEqual(decode(empty), { url: 'http://h/' });
  }
  assert.deepEqual(decode({ schemes: ['', 'Basic'] }).authentication, { scheme: 'Basic' });
  assert.throws(() => decode({ schemes: [], credentials: 'SECRET' }), isRefusal(/credentials without an authentication scheme/));
});

function isRefusal(reason: RegExp) {
  return (error: unknown) =>
    error instanceof A2AError &&
    error.code === 'INVALID_PARAMS' &&
    reason.test(error.message) &&
    !error.message.includes('SECRET');
}

/** Params of a create with one member of the configuration replaced. */
function createWith(dialect: DialectName, member: JsonObject): JsonObject {
  const config = { url: 'http://h/', ...member };
  if (dialect === '1.0') return { taskId: 't', ...config };
  return { [dialect === '0.3' ? 'taskId' : 'id']: 't', pushNotificationConfig: config };
}

for (const name of DIALECT_NAMES) {
  const { push } = DIALECTS[name];
  const authentication = (scheme: string, credentials: string) => ({
    authentication: name === '1.0' ? { scheme, credentials } : { schemes: [scheme], credentials },
  });

  test(`${name}: the bounds of a configuration apply exactly at their edges [S4-32]`, () => {
    const bounds: [max: number, member: (value: string) => JsonObject][] = [
      [PUSH_URL_CHARS_MAX, url => ({ url })],
      [PUSH_CONFIG_ID_CHARS_MAX, id => ({ id })],
      [PUSH_SECRET_CHARS_MAX, token => ({ token })],
      [PUSH_SECRET_CHARS_MAX, credentials => authentication('Basic', credentials)],
      [PUSH_SCHEME_CHARS_MAX, scheme => authentication(scheme, 'x')],
    ];
    for (const [max, member] of bounds) {
      push.decodeCreate(createWith(name, member('x'.repeat(max))));
      assert.throws(() => push.decodeCreate(createWith(name, member('x'.repeat(max + 1)))), isRefusal(/^Invalid params/));
    }
  });

  test(`${name}: values that would break a request to the webhook are refused, and never quoted [S4-32]`, () => {
    const members: [JsonObject, RegExp][] = [
      [{ url: '' }, /url must be a URL/],
      [{ url: null }, /url must be/],
      [{ url: 'http://h/SECRET x' }, /url must be a URL/],
      [{ url: 'http://h/SECRET\r\n' }, /url must be a URL/],
      [{ token: 'SECRET\r\nx-evil: 1' }, /token must be at most \d+ printable ASCII/],
      [{ token: 'SECRETé' }, /token must be at most/],
      [{ token: 7 }, /token must be/],
      [{ id: 'SECRET\u0000' }, /id must be at most/],
      [{ id: 'SECRET\ud800' }, /id must be at most/],
      [authentication('SECRET x', ''), /must be the name of an HTTP authentication scheme/],
      [authentication('Bearer', 'SECRET\n'), /credentials must be at most/],
      [{ authentication: 'SECRET' }, /authentication must be object/],
    ];
    for (const [member, reason] of members) {
      assert.throws(() => push.decodeCreate(createWith(name, member)), isRefusal(reason), JSON.stringify(member));
    }
    for (const params of [undefined, null, [], {}, createWith(name, { url: undefined })]) {
      for (const decode of [push.decodeCreate, push.decodeGet])
        if (params !== undefined)
          assert.throws(() => decode({ ...params, url: undefined, id: '', taskId: '' }), isRefusal(/params/));
    }
  });
}

test('each dialect decodes requests for configurations by its own names', () => {
  const { '1.0': v10, '0.3': v03, legacy } = DIALECTS;
  const one = { taskId: 't', id: 'c' };
  assert.deepEqual(v10.push.decodeGet(one), one);
  assert.deepEqual(v10.push.decodeDelete({ task_id: 't', id: 'c' }), one);
  assert.throws(() => v10.push.decodeGet({ taskId: 't' }), isRefusal(/required property 'id'/));
  assert.deepEqual(v03.push.decodeGet({ id: 't', pushNotificationConfigId: 'c', metadata: {} }), one);
  assert.deepEqual(v03.push.decodeGet({ id: 't', pushNotificationConfigId: null }), { taskId: 't' });
  assert.deepEqual(v03.push.decodeDelete({ id: 't', pushNotificationConfigId: 'c' }), one);
  assert.throws(() => v03.push.decodeDelete({ id: 't' }), isRefusal(/required property 'pushNotificationConfigId'/));
  assert.deepEqual(legacy.push.decodeGet({ id: 't' }), { taskId: 't' });
  assert.deepEqual(v03.push.decodeList({ id: 't' }), { taskId: 't' });
  assert.deepEqual(v10.push.decodeList({ task_id: 't', page_size: 2, page_token: 'p' }), {
    taskId: 't',
    pageSize: 2,
    pageToken: 'p',
  });
  assert.deepEqual(v10.push.decodeList({ taskId: 't', pageSize: 0, pageToken: '' }), { taskId: 't' });
  assert.throws(() => v10.push.decodeList({ taskId: 't', pageSize: -1 }), isRefusal(/params\.pageSize must be >= 0/));
});

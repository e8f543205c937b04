import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { DIALECTS } from '../dialects.ts';
import { A2AError } from '../errors.ts';
import type { JsonObject } from '../json-value.ts';
import type { Message, Part, StreamResponse } from '../types.ts';
import { dialect03Proto } from './dialect.ts';
import { protoResult } from './encode.ts';

const json = DIALECTS['0.3'];
const wire = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

type Golden = {
  events: { about: string; canonical: StreamResponse; wire: JsonObject }[];
  sends: { about: string; wire: JsonObject; canonical: JsonObject }[];
  sets: { about: string; wire: JsonObject; canonical: JsonObject }[];
};
const golden = JSON.parse(readFileSync(new URL('../../golden/proto-0.3/proto-03.json', import.meta.url), 'utf8')) as Golden;

for (const { about, canonical, wire: expected } of golden.events) {
  test(`golden event: ${about}`, () => {
    assert.deepEqual(wire(dialect03Proto.encodeEvent(canonical)), expected);
    if (!('task' in canonical)) return;
    assert.deepEqual(wire(dialect03Proto.encodeTask(canonical.task)), expected.task);
    assert.deepEqual(wire(dialect03Proto.encodeSendResult(canonical)), expected);
    assert.deepEqual(wire(dialect03Proto.encodeSnapshot(canonical.task)), [expected]);
  });
}

for (const { about, wire: body, canonical } of golden.sends) {
  test(`golden send: ${about}`, () => assert.deepEqual(dialect03Proto.decodeSend(body), canonical));
}

for (const { about, wire: body, canonical } of golden.sets) {
  test(`golden push configuration: ${about} [C-21]`, () => assert.deepEqual(dialect03Proto.push.decodeCreate(body), canonical));
}

test('a push configuration has its resource name and no secrets [C-21]', () => {
  const config = {
    id: 'c',
    taskId: 't',
    url: 'http://h/',
    token: 'SECRET',
    authentication: { scheme: 'Bearer', credentials: 'SECRET' },
  };
  const shown = {
    name: 'tasks/t/pushNotificationConfigs/c',
    pushNotificationConfig: { id: 'c', url: 'http://h/', authentication: { schemes: ['Bearer'] } },
  };
  assert.deepEqual(dialect03Proto.push.encode(config), shown);
  assert.deepEqual(dialect03Proto.push.encodeList([config], ''), { configs: [shown], nextPageToken: '' });
});

test('requests for a configuration name the task as the path does', () => {
  const { push } = dialect03Proto;
  assert.deepEqual(push.decodeGet({ taskId: 't', id: 'c' }), { taskId: 't', id: 'c' });
  assert.deepEqual(push.decodeDelete({ taskId: 't', id: 'c' }), { taskId: 't', id: 'c' });
  assert.deepEqual(push.decodeList({ taskId: 't' }), { taskId: 't' });
});

const name = fc.string({ minLength: 1, maxLength: 8 });
// Reserved keys hold values that 0.3 cannot express; clients cannot use them.
const key = name.filter(text => !text.startsWith('hopline.') && text !== 'data_part_compat' && text !== '__proto__');
const metadata = fc.dictionary(key, fc.jsonValue(), { minKeys: 1, maxKeys: 3, noNullPrototype: true });
const described = { filename: name, mediaType: name, metadata };
const record = { noNullPrototype: true } as const;
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ text: fc.string({ unit: 'binary' }), ...described }, { requiredKeys: ['text'], ...record }),
  fc.record({ raw: fc.base64String(), ...described }, { requiredKeys: ['raw'], ...record }),
  fc.record({ url: fc.webUrl(), ...described }, { requiredKeys: ['url'], ...record }),
  fc.record({ data: fc.jsonValue(), ...described }, { requiredKeys: ['data'], ...record }),
);
const names = fc.array(name, { minLength: 1, maxLength: 2 });
const message: fc.Arbitrary<Message> = fc.record(
  {
    messageId: name,
    role: fc.constantFrom('ROLE_USER' as const, 'ROLE_AGENT' as const),
    parts: fc.array(part, { minLength: 1, maxLength: 4 }),
    contextId: name,
    taskId: name,
    metadata,
    extensions: names,
    referenceTaskIds: names,
  },
  { requiredKeys: ['messageId', 'role', 'parts'], ...record },
);

test('a message is decoded in this notation and in the JSON of 0.3 [S3-29]', () => {
  fc.assert(
    fc.property(message, original => {
      const inJson = json.encodeMessage(original);
      const inProto = protoResult(inJson).message;
      for (const body of [{ message: inProto }, { request: inProto }, { message: inJson }]) {
        assert.deepEqual(wire(dialect03Proto.decodeSend(wire(body)).message), wire(original));
      }
    }),
  );
});

test('any input is decoded, or refused with INVALID_PARAMS and never quoted [S4-32]', () => {
  const member = fc.constantFrom(
    'message',
    'request',
    'content',
    'parts',
    'file',
    'data',
    'configuration',
    'config',
    'pushNotificationConfig',
    'taskId',
    'id',
    'url',
  );
  const junk = fc.letrec(tie => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constant('SECRET'),
      fc.jsonValue(),
      fc.array(tie('value')),
      fc.dictionary(member, tie('value')),
    ),
  })).value;
  const { push } = dialect03Proto;
  const decoders = [dialect03Proto.decodeSend, push.decodeCreate, push.decodeGet, push.decodeList, push.decodeDelete];
  fc.assert(
    fc.property(fc.constantFrom(...decoders), junk, (decode, value) => {
      try {
        decode(value);
      } catch (error) {
        assert(error instanceof A2AError);
        assert.equal(error.code, 'INVALID_PARAMS');
        assert.equal(error.message.includes('SECRET'), false);
      }
    }),
  );
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import fc from 'fast-check';
import { messageType } from './messages.ts';
import { clientOf, read } from './procedures.test-kit.ts';
import { writeMessage } from './proto-json.ts';
import { JSON_LEVELS_MAX } from './repair.ts';
import { PROCEDURES, SERVICE_1_0 } from './services.ts';

const MESSAGE = 'lf.a2a.v1.Message';
const STATUS = 'lf.a2a.v1.TaskStatus';

const written = (type: string, json: object) => read(type, writeMessage(messageType(type), json as Record<string, unknown>));
const nested = (levels: number): unknown => Array.from({ length: levels }).reduce<unknown>(inner => [inner], 1);

test('any bytes are either decoded as a request or refused as invalid', () => {
  fc.assert(
    fc.property(fc.constantFrom(...PROCEDURES), fc.uint8Array({ maxLength: 64 }), (procedure, bytes) => {
      try {
        procedure.params(bytes);
      } catch (error) {
        assert.ok(error instanceof A2AError && error.code === 'INVALID_PARAMS', String(error));
      }
    }),
    { numRuns: 2_000 },
  );
});

test('data may nest as deep as protobuf allows, and no deeper', () => {
  const { procedure, write } = clientOf(SERVICE_1_0, 'SendMessage');
  const send = (levels: number) => write({ message: { messageId: 'm', parts: [{ data: nested(levels) }] } });
  const params = procedure.params(send(31)) as { message: { parts: { data: unknown }[] } };
  assert.deepEqual(params.message.parts[0]?.data, nested(31));
  // Each level is a Value in a ListValue. Built by hand, because encoders enforce the same limit.
  const value = (inner: Buffer): Buffer => field(6, field(1, inner));
  const deep = Array.from({ length: 5_000 }).reduce<Buffer>(value, Buffer.from([0x20, 1]));
  const bytes = field(2, field(5, field(4, deep)));
  assert.throws(() => procedure.params(bytes), { code: 'INVALID_PARAMS' });
});

test('the levels of a value that are too deep for clients become JSON text', () => {
  const objects = (levels: number): unknown => Array.from({ length: levels }).reduce<unknown>(inner => ({ k: inner }), 1);
  const within = (value: unknown, level: number): unknown =>
    level === 0 ? value : within(Object.values(value as object)[0], level - 1);
  const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } };
  for (const [nest, levels] of [objects, nested].flatMap(nest => [[nest, 40] as const, [nest, 200] as const])) {
    const kept = nest(JSON_LEVELS_MAX);
    const deep = nest(levels);
    const history = [{ messageId: 'm', parts: [{ data: kept, metadata: { kept: 1 } }, { data: deep }], metadata: { deep } }];
    const { tasks } = written('lf.a2a.v1.ListTasksResponse', { tasks: [{ ...task, history }] }) as {
      tasks: [{ history: typeof history }];
    };
    const [message] = tasks[0].history;
    assert.deepEqual(message?.parts[0], history[0]?.parts[0]);
    assert.equal(within(message?.parts[1]?.data, JSON_LEVELS_MAX), JSON.stringify(nest(levels - JSON_LEVELS_MAX)));
    assert.equal(within(message?.metadata, JSON_LEVELS_MAX), JSON.stringify(nest(levels + 1 - JSON_LEVELS_MAX)));
  }
});

test('a value that cannot be repaired is refused', () => {
  assert.throws(() => writeMessage(messageType(MESSAGE), { messageId: 5 }), { code: 'INVALID_AGENT_RESPONSE' });
});

/** A length-delimited field. */
function field(number: number, content: Buffer): Buffer {
  const length: number[] = [];
  for (let rest = content.length; ; rest >>>= 7) {
    length.push(rest > 127 ? (rest & 127) | 128 : rest);
    if (rest <= 127) break;
  }
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), content]);
}

test('values that protobuf cannot hold are repaired, and the rest is kept', () => {
  const state = 'TASK_STATE_WORKING';
  assert.deepEqual(written(STATUS, { state, timestamp: 'yesterday' }), { state });
  assert.deepEqual(written(STATUS, { state, timestamp: '' }), { state });
  assert.deepEqual(written(STATUS, { state, timestamp: '2026-01-01T00:00:00' }), { state, timestamp: '2026-01-01T00:00:00Z' });
  const parts = [
    { text: 'a\ud800b' },
    { raw: 'aGk=!' },
    { data: { 'k\udc00': 'v\ud800', gone: undefined } },
    { url: 'u', filename: undefined },
  ];
  assert.deepEqual(written(MESSAGE, { messageId: 'm', parts, contextId: undefined, metadata: { timestamp: 'yesterday' } }), {
    messageId: 'm',
    parts: [{ text: 'a\ufffdb' }, { raw: 'aGk=' }, { data: { 'k\ufffd': 'v\ufffd' } }, { url: 'u' }],
    metadata: { timestamp: 'yesterday' },
  });
});

test('a metadata key never sets a prototype', () => {
  const metadata = JSON.parse('{"__proto__":{"a":1},"constructor":"x"}') as object;
  const { procedure, write } = clientOf(SERVICE_1_0, 'CancelTask');
  const params = procedure.params(write({ id: 't', metadata })) as { metadata: object };
  assert.equal(Object.getPrototypeOf(params.metadata), Object.prototype);
  assert.deepEqual(Object.keys(params.metadata), ['__proto__', 'constructor']);
});

/** Fields of a .proto file: message.field = number. */
function fieldsOf(proto: string): string[] {
  const fields: string[] = [];
  let message = '';
  for (const line of proto.split('\n')) {
    message = /^message (\w+) \{/.exec(line)?.[1] ?? message;
    if (/^(enum|service) /.test(line)) message = '';
    const [, name, number] = /^ +(?:optional |repeated )?[\w.<>, ]+ (\w+) = (\d+)(?: ?\[| *;|$)/.exec(line) ?? [];
    if (message !== '' && name !== undefined) fields.push(`${message}.${name} = ${number}`);
  }
  return fields;
}

for (const [file, scope] of [
  ['a2a-1.0.proto', 'lf.a2a.v1'],
  ['a2a-0.3.proto', 'a2a.v1'],
]) {
  test(`the descriptors have every field of ${file}`, () => {
    const fields = fieldsOf(readFileSync(new URL(`../proto/${file}`, import.meta.url), 'utf8'));
    assert.ok(fields.length > 100, `only ${fields.length} found`);
    for (const one of fields) {
      const [message, name, , number] = one.split(/[. ]/) as [string, string, string, string];
      const found = messageType(`${scope}.${message}`).fields.find(known => known.name === name);
      assert.equal(found?.number, Number(number), one);
    }
    const names = new Set(fields.map(one => one.split('.')[0]!));
    const all = [...names].reduce((sum, name) => sum + messageType(`${scope}.${name}`).fields.length, 0);
    assert.equal(fields.length, all);
  });
}

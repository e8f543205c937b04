import assert from 'node:assert/strict';
import test from 'node:test';
import { testBothWays } from '@hopline/a2a/test-kit';
import { headers } from '@nats-io/nats-core';
import fc from 'fast-check';
import {
  decodeFacts,
  decodeFactsOnly,
  decodeInput,
  decodeTrace,
  decodeValue,
  decodeWork,
  encodeHeaders,
  encodePayload,
} from './codec.ts';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const other = '00-ffffffffffffffffffffffffffffffff-b7ad6b7169203331-01';
const agentRecord = {
  v: 1,
  at: 1,
  from: { id: 'c', agent: 'a', turn: 1, attempt: 1 },
  n: 1,
  inputs: [{ kind: 'text', lane: 'l', tokens: ['x'] }],
};
const clientRecord = { v: 1, at: 1, from: 'client', input: { kind: 'cancel' } };
const aggregate = { taskId: 't', generation: 1 };
const factRecord = { v: 1, facts: [{ kind: 'call.started' }], aggregate, startSeq: 0, startStoredAt: 1 };
const work = { v: 1, taskId: 't', contextId: 'c', turn: 1, profile: 'caipe', message: {} };

test('records are decoded as they were encoded', () => {
  assert.deepEqual(decodeInput(encodePayload(agentRecord)), agentRecord);
  assert.deepEqual(decodeInput(encodePayload(clientRecord)), clientRecord);
  assert.deepEqual(decodeFacts(encodePayload(factRecord), 't'), factRecord);
  assert.deepEqual(decodeWork(encodePayload(work)), work);
  assert.deepEqual(decodeValue(encodePayload({ a: 1 })), { a: 1 });
});

testBothWays('the facts of a record are found whatever they contain, and in any order of its members', () => {
  const { facts, aggregate, ...rest } = factRecord;
  const start = '],"aggregate":{"taskId":"t"';
  const tricky = [
    { kind: 'a', text: start, nested: [{ facts: [], aggregate }], aggregate },
    { kind: 'b', 'é"\u{1f600}': `"${start}`, list: [[], { x: [], aggregate }] },
  ];
  for (const record of [
    factRecord,
    { ...factRecord, facts: tricky },
    { ...factRecord, facts: [] },
    { ...rest, aggregate, facts: tricky },
    { facts: tricky, ...rest, aggregate },
    { v: 1, facts, aggregate: { generation: 1, taskId: 't' }, startSeq: 0, startStoredAt: 1 },
  ])
    assert.deepEqual(decodeFactsOnly(encodePayload(record), 't'), record.facts, JSON.stringify(record));
  const spaced = Buffer.from(JSON.stringify({ ...factRecord, facts: tricky }, undefined, 1));
  assert.deepEqual(decodeFactsOnly(spaced, 't'), tricky);
});

testBothWays('a payload that is not a record has no facts', () => {
  const { facts: _, ...withoutFacts } = factRecord;
  const broken = [
    { ...factRecord, facts: [null] },
    { ...factRecord, facts: [{}] },
    { ...factRecord, v: 3 },
    withoutFacts,
    {},
    null,
  ];
  for (const record of broken) assert.equal(decodeFactsOnly(encodePayload(record), 't'), undefined, JSON.stringify(record));
  assert.equal(decodeFactsOnly(encodePayload(factRecord), 'another'), undefined);
  for (const text of ['', '{"v":1,"facts":', 'x'.repeat(40), '{"v":1,"facts":[{},"aggregate":{"taskId":"t"'])
    assert.equal(decodeFactsOnly(Buffer.from(text), 't'), undefined, text);
  const json = fc.jsonValue();
  fc.assert(
    fc.property(fc.array(json), json, (values, extra) => {
      const facts = values.map(value => ({ kind: 'x', value }));
      const record = { v: 1, facts, aggregate: { ...aggregate, extra }, startSeq: 0, startStoredAt: 1 };
      assert.deepEqual(decodeFactsOnly(encodePayload(record), 't'), decodeFacts(encodePayload(record), 't')?.facts);
    }),
  );
});

test('ids are counted in code points, as in the requests of clients', () => {
  const recordOf = (id: string) => {
    const message = { messageId: id, role: 'ROLE_USER', parts: [] };
    return { v: 1, at: 1, from: 'client', input: { kind: 'message', message, contextId: id, role: 'supervisor', profile: 'p' } };
  };
  for (const longest of ['x'.repeat(256), '\u{1f600}'.repeat(256)])
    assert.deepEqual(decodeInput(encodePayload(recordOf(longest))), recordOf(longest));
  for (const tooLong of ['x'.repeat(257), '\u{1f600}'.repeat(257)])
    assert.equal(decodeInput(encodePayload(recordOf(tooLong))), 'not a record');
});

test('a payload that lacks a member which readers rely on is not a record', () => {
  const broken = (record: object, patch: object) => encodePayload({ ...record, ...patch });
  const patches = [
    { v: '1' },
    { at: 'now' },
    { at: 8.64e15 + 1 },
    { from: 'x' },
    { from: null },
    { from: { id: 'c' } },
    { n: 1.5 },
    { inputs: {} },
  ];
  for (const patch of patches) assert.equal(decodeInput(broken(agentRecord, patch)), 'not a record', JSON.stringify(patch));
  for (const input of [null, { kind: 'text', lane: 'l' }])
    assert.deepEqual(decodeInput(broken(agentRecord, { inputs: [input] })), { ...agentRecord, inputs: [{ kind: 'malformed' }] });
  assert.equal(decodeInput(broken(agentRecord, { v: 2 })), 'unknown version');
  assert.equal(decodeInput(broken(clientRecord, { input: undefined })), 'not a record');
  const timeout = { v: 1, at: 1, from: 'relay', input: { kind: 'timeout', request: 1 } } as const;
  const authTimeout = { ...timeout, input: { kind: 'auth-timeout', request: 1 } };
  for (const one of [timeout, authTimeout]) assert.deepEqual(decodeInput(encodePayload(one)), one);
  for (const input of [undefined, { kind: 'timeout' }, { kind: 'auth-timeout', request: '1' }])
    assert.equal(decodeInput(encodePayload({ ...timeout, input })), 'not a record');
  assert.deepEqual(decodeInput(encodePayload({ ...timeout, input: { kind: 'cancel' } })), {
    ...timeout,
    input: { kind: 'unknown' },
  });
  const copyForward = { v: 1, at: 1, from: 'relay', input: { kind: 'copy-forward', startStoredAt: 1 } } as const;
  assert.deepEqual(decodeInput(encodePayload(copyForward)), copyForward);
  for (const input of [
    { kind: 'copy-forward' },
    { ...copyForward.input, startStoredAt: 1e16 },
    { ...copyForward.input, idleSince: -1e16 },
  ])
    assert.equal(decodeInput(encodePayload({ ...copyForward, input })), 'not a record');
  const copy = { ...factRecord, facts: [], copied: { part: 1, last: true, facts: factRecord.facts } };
  assert.deepEqual(decodeFacts(encodePayload(copy), 't'), copy);
  for (const patch of [
    { copied: null },
    { copied: { part: 1, last: true, facts: [1] } },
    { copied: { part: '1', last: true, facts: [] } },
    { v: 3 },
    { facts: {} },
    { facts: [1] },
    { aggregate: null },
    { aggregate: { taskId: 'other' } },
    { startSeq: null },
    { startStoredAt: undefined },
    { startStoredAt: 8.64e15 + 1 },
  ]) {
    assert.equal(decodeFacts(broken(factRecord, patch), 't'), undefined, JSON.stringify(patch));
  }
  for (const patch of [{ v: 2 }, { taskId: 'a.b' }, { message: 'x' }, { turn: null }, { contextId: 1 }]) {
    assert.equal(decodeWork(broken(work, patch)), undefined, JSON.stringify(patch));
  }
});

test('decoders never throw, whatever the bytes', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array(),
        fc.json().map(json => Buffer.from(json)),
      ),
      payload => {
        decodeInput(payload);
        decodeFacts(payload, 't');
        decodeWork(payload);
        decodeValue(payload);
      },
    ),
  );
});

test('trace context is sent twice, except by agents, and the Hopline copy takes precedence over a rewritten one', () => {
  const encoded = encodeHeaders({ id: 'i', expected: 0, trace: { traceparent, tracestate: 'a=1' } });
  assert.equal(encoded.get('Nats-Msg-Id'), 'i');
  assert.equal(encoded.get('Nats-Expected-Last-Subject-Sequence'), '0');
  assert.equal(encoded.get('traceparent'), traceparent);
  assert.deepEqual(decodeTrace(encoded), { trace: { traceparent, tracestate: 'a=1' } });
  encoded.set('traceparent', other);
  assert.equal(decodeTrace(encoded).trace?.traceparent, traceparent);
  const ofAgent = encodeHeaders({ id: 'i', trace: { traceparent }, copiesTrace: false });
  assert.deepEqual(ofAgent.keys(), ['Nats-Msg-Id', 'traceparent']);
  assert.deepEqual(decodeTrace(ofAgent), { trace: { traceparent } });
  const remote = headers();
  remote.set('traceparent', other);
  assert.deepEqual(decodeTrace(remote), { trace: { traceparent: other } });
});

test('an append names the newest sequence that it expects (0 for the first append), or none', () => {
  const expectedOf = (expected?: number) => encodeHeaders({ id: 'i', expected }).get('Nats-Expected-Last-Subject-Sequence');
  assert.deepEqual([expectedOf(7), expectedOf(0), expectedOf()], ['7', '0', '']);
});

test('an invalid trace context is neither sent nor read', () => {
  for (const bad of ['', 'x', `${traceparent}\r\nNats-Msg-Id: y`, traceparent.toUpperCase()]) {
    assert.deepEqual(decodeTrace(encodeHeaders({ id: 'i', trace: { traceparent: bad } })), {});
  }
  const long = encodeHeaders({ id: 'i', trace: { traceparent, tracestate: 'x'.repeat(513) } });
  assert.deepEqual(decodeTrace(long), { trace: { traceparent } });
  assert.deepEqual(decodeTrace(undefined), {});
  assert.deepEqual(decodeTrace(headers()), {});
});

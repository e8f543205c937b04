import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeRemoteEvent, decodeRemoteResponse } from './decode-event.ts';
import { DIALECTS } from './dialects.ts';
import { type Artifact, type Message, type Part, type StreamResponse, TASK_STATES } from './types.ts';

function golden<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../golden/${name}`, import.meta.url), 'utf8')) as T;
}

for (const { about, wire, canonical } of golden<{ about: string; wire: unknown; canonical: StreamResponse }[]>(
  '0.3-stream.json',
)) {
  test(`0.3 golden: ${about}`, () => {
    const text = JSON.stringify(DIALECTS['0.3'].encodeEvent(canonical));
    assert.deepEqual(JSON.parse(text), wire);
    assert.deepEqual(DIALECTS['0.3'].decodeEvent(wire), { event: canonical });
    assert.deepEqual(decodeRemoteEvent(wire), { event: canonical });
  });
  test(`1.0 has exactly one member and decodes what it encoded: ${about} [S1-22]`, () => {
    const wire10 = JSON.parse(JSON.stringify(DIALECTS['1.0'].encodeEvent(canonical)));
    assert.equal(Object.keys(wire10).length, 1);
    assert.deepEqual(DIALECTS['1.0'].decodeEvent(wire10), { event: canonical });
    assert.deepEqual(decodeRemoteEvent(wire10), { event: canonical });
  });
}

for (const { about, wire, read } of golden<{ about: string; wire: unknown; read: unknown }[]>('remote-results.json')) {
  test(`remote result: ${about}`, () => {
    assert.deepEqual(decodeRemoteEvent(wire), read);
    assert.deepEqual(decodeRemoteResponse({ jsonrpc: '2.0', id: 1, result: wire }), read);
  });
}

test('a JSON-RPC error of a remote agent keeps its code and whether to retry [S4-40]', () => {
  const plain = { code: -32603, message: 'no', data: { taskId: 't', reason: 'r', retryable: true } };
  assert.deepEqual(decodeRemoteResponse({ error: plain }), { error: { code: -32603, message: 'no', retryable: true } });
  const typed = { code: -32001, message: 'no', data: [{ '@type': 'x', metadata: { retryable: 'true' } }] };
  assert.deepEqual(decodeRemoteResponse({ error: typed }), { error: { code: -32001, message: 'no', retryable: true } });
  assert.deepEqual(decodeRemoteResponse({ error: {} }), { error: { code: -32603, message: '', retryable: false } });
});

// fast-check builds records without a prototype, JSON does not.
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

// Reserved keys hold values that 0.3 cannot express; clients cannot use them.
const metadata = fc
  .dictionary(
    fc.string({ minLength: 1 }).filter(key => !key.startsWith('hopline.') && key !== 'data_part_compat'),
    fc.jsonValue(),
    {
      minKeys: 1,
      maxKeys: 3,
    },
  )
  .map(plain);
const name = fc.string({ minLength: 1, maxLength: 8 });
const described = { filename: name, mediaType: name, metadata };
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ text: fc.string({ unit: 'binary' }), ...described }, { requiredKeys: ['text'] }),
  fc.record({ raw: fc.base64String(), ...described }, { requiredKeys: ['raw'] }),
  fc.record({ url: fc.webUrl(), ...described }, { requiredKeys: ['url'] }),
  fc.record({ data: fc.jsonValue().map(plain), ...described }, { requiredKeys: ['data'] }),
);
const parts = fc.array(part, { maxLength: 4 });
const message: fc.Arbitrary<Message> = fc
  .record(
    {
      messageId: name,
      role: fc.constantFrom('ROLE_USER' as const, 'ROLE_AGENT' as const),
      parts,
      contextId: name,
      taskId: name,
      metadata,
      extensions: fc.array(name, { minLength: 1, maxLength: 2 }),
      referenceTaskIds: fc.array(name, { minLength: 1, maxLength: 2 }),
    },
    { requiredKeys: ['messageId', 'role', 'parts'] },
  )
  .map(plain);
const artifact: fc.Arbitrary<Artifact> = fc.record(
  { artifactId: name, parts, name, description: name, metadata },
  { requiredKeys: ['artifactId', 'parts'] },
);
const status = fc.record(
  { state: fc.constantFrom(...TASK_STATES), message, timestamp: fc.constant('2026-01-01T00:00:00.000Z') },
  { requiredKeys: ['state'] },
);
const envelope = { taskId: name, contextId: name, metadata };
const event: fc.Arbitrary<StreamResponse> = fc
  .oneof(
    fc
      .record(
        {
          id: name,
          contextId: name,
          status,
          artifacts: fc.array(artifact, { maxLength: 3 }),
          history: fc.array(message, { maxLength: 3 }),
          metadata,
        },
        { requiredKeys: ['id', 'contextId', 'status'] },
      )
      .map(task => ({ task })),
    message.map(value => ({ message: value })),
    fc
      .record({ ...envelope, status }, { requiredKeys: ['taskId', 'contextId', 'status'] })
      .map(statusUpdate => ({ statusUpdate })),
    fc
      .record(
        { ...envelope, artifact, append: fc.boolean(), lastChunk: fc.boolean() },
        { requiredKeys: ['taskId', 'contextId', 'artifact', 'append', 'lastChunk'] },
      )
      .map(artifactUpdate => ({ artifactUpdate })),
  )
  .map(plain);

for (const dialect of Object.values(DIALECTS)) {
  test(`${dialect.name}: decode(encode(event)) loses nothing of text, file and data parts [S3-29]`, () => {
    fc.assert(
      fc.property(event, value => {
        // The legacy dialect has no event for a task: it sends a task only as a result.
        const isTask = dialect.name === 'legacy' && 'task' in value;
        const wire = JSON.parse(JSON.stringify(isTask ? dialect.encodeTask(value.task) : dialect.encodeEvent(value)));
        assert.deepEqual(dialect.decodeEvent(wire), { event: value });
      }),
    );
  });

  test(`${dialect.name}: decode(encode(send)) loses nothing [S1-5]`, () => {
    const sendable = message.filter(
      value => value.parts.length > 0 && /^[\x20-\x7e]+$/.test(value.messageId + (value.taskId ?? '')),
    );
    fc.assert(
      fc.property(sendable, fc.boolean(), fc.nat(), metadata, (value, blocking, historyLength, meta) => {
        const { taskId: _taskId, ...taskless } = value;
        // The legacy form names the task next to the message, and always blocks.
        const request =
          dialect.name === 'legacy'
            ? { message: { ...taskless, contextId: 'c' }, chosenTaskId: 't', blocking: true, historyLength, metadata: meta }
            : { message: { ...value, contextId: 'c' }, blocking, historyLength, metadata: meta };
        const wire = JSON.parse(JSON.stringify(dialect.encodeSend(request)));
        assert.deepEqual(dialect.decodeSend(wire), request);
      }),
    );
  });

  test(`${dialect.name}: decoding never throws, whatever an agent sends [S0-42 S2-29]`, () => {
    const members = fc.constantFrom(
      'kind',
      'type',
      'task',
      'message',
      'statusUpdate',
      'artifactUpdate',
      'status',
      'artifact',
      'parts',
      'state',
      'data',
    );
    const junk = fc.letrec(tie => ({
      value: fc.oneof({ maxDepth: 5 }, fc.jsonValue(), fc.array(tie('value')), fc.dictionary(members, tie('value'))),
    })).value;
    fc.assert(
      fc.property(junk, value => {
        const decoded = dialect.decodeEvent(value);
        assert.equal('event' in decoded || 'unknown' in decoded, true);
      }),
    );
  });
}

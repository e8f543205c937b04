import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { isLegacyTask, legacyOrigin } from './dialect-legacy/origin.ts';
import { DIALECTS, isAmbiguous, unversionedDialect } from './dialects.ts';
import { A2AError } from './errors.ts';
import { Fold } from './fold.ts';
import type { JsonObject } from './json-value.ts';
import type { StreamResponse, Task, TaskState } from './types.ts';

const { legacy } = DIALECTS;

function golden<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../golden/${name}`, import.meta.url), 'utf8')) as T;
}

type Frame = { about: string; wire: JsonObject; beside: JsonObject; canonical: StreamResponse; index?: number };

for (const { about, wire, beside, canonical, index } of golden<Frame[]>('legacy-stream.json')) {
  test(`legacy golden: ${about}`, () => {
    const result = legacy.encodeEvent(canonical, index);
    assert.deepEqual(JSON.parse(JSON.stringify(result)), wire);
    if (!('task' in canonical)) assert.deepEqual(legacy.decodeEvent(wire), { event: canonical });
    const frame = JSON.parse(`{"jsonrpc":"2.0","id":"req-1","result":${legacy.frameText(result)}}`);
    assert.deepEqual(frame, { jsonrpc: '2.0', id: 'req-1', result: wire, ...beside });
  });
}

test('legacy golden: the task of S4 has its timestamps and indexes, without reserved metadata [S3-30 S4-14]', () => {
  const { canonical, wire } = golden<{ canonical: Task; wire: JsonObject }>('legacy-task.json');
  assert.deepEqual(JSON.parse(JSON.stringify(legacy.encodeTask(canonical))), wire);
  assert.equal(isLegacyTask(canonical), true);
});

test('only ended tasks of the legacy form have a processing time, which is never negative', () => {
  const task = (state: TaskState, metadata: JsonObject): Task => ({
    id: 't',
    contextId: 'c',
    status: { state, timestamp: '2026-01-01T00:00:00.000Z' },
    metadata,
  });
  const shown = (state: TaskState, metadata: JsonObject) => legacy.encodeTask(task(state, metadata)).metadata;
  const at = Date.parse('2026-01-01T00:00:00.000Z');
  assert.equal(shown('TASK_STATE_WORKING', legacyOrigin(at - 5)), undefined);
  assert.deepEqual(shown('TASK_STATE_FAILED', { a: 1 }), { a: 1 });
  assert.deepEqual(shown('TASK_STATE_FAILED', legacyOrigin(at + 5)), { processingTimeMs: 0 });
  assert.equal(isLegacyTask(task('TASK_STATE_WORKING', {})), false);
});

test('a snapshot has each artifact whole, then the state [S3-31]', () => {
  const { canonical } = golden<{ canonical: Task }>('legacy-task.json');
  const fold = new Fold().resume();
  const frames = legacy.encodeSnapshot(canonical);
  for (const frame of frames) {
    const decoded = legacy.decodeEvent(JSON.parse(JSON.stringify(frame)));
    assert('event' in decoded);
    fold.add(decoded.event);
  }
  assert.deepEqual([...fold.artifacts.keys()], ['a1', 'a2']);
  assert.deepEqual(
    frames.map(frame => (frame.artifact as JsonObject | undefined)?.index ?? frame.final),
    [0, 1, true],
  );
});

test('text split anywhere folds back to itself using only the index [S0-30]', () => {
  const run = fc.array(fc.record({ index: fc.nat(2), text: fc.string({ unit: 'binary' }) }), { maxLength: 30 });
  fc.assert(
    fc.property(run, chunks => {
      const folded = new Map<number, string>();
      for (const { index, text } of chunks) {
        const artifact = { artifactId: `a${index}`, parts: [{ text }] };
        const event = { artifactUpdate: { taskId: 't', contextId: 'c', artifact, append: folded.has(index) } };
        const wire = JSON.parse(JSON.stringify(legacy.encodeEvent(event, index)));
        const before = wire.artifact.append ? folded.get(wire.artifact.index)! : '';
        folded.set(wire.artifact.index, before + wire.artifact.parts[0].text);
      }
      for (const [index, text] of folded) {
        const texts = chunks.filter(chunk => chunk.index === index).map(chunk => chunk.text);
        assert.equal(text, texts.join(''));
      }
    }),
  );
});

test('artifacts without an id are identified by their index', () => {
  const frame = (index: number) => ({ id: 't', artifact: { index, parts: [{ type: 'text', text: 'x' }] } });
  const ids = [0, 1].map(index => {
    const decoded = legacy.decodeEvent(frame(index));
    return 'event' in decoded && 'artifactUpdate' in decoded.event && decoded.event.artifactUpdate.artifact.artifactId;
  });
  assert.deepEqual(ids, ['0', '1']);
});

test('parts are decoded by type or by media type [S4-10 S3-29]', () => {
  const parts = [
    { type: 'text', text: ' a ' },
    { type: 'application/json', data: { n: 1 } },
    { type: 'data', data: { n: 2 } },
    { type: 'file', file: { name: 'x', mimeType: 'a/b', bytes: 'AAEC', uri: null } },
    { type: 'file', file: { uri: 'https://example.org/' } },
  ];
  const { message } = legacy.decodeSend({ id: 't', message: { role: 'user', parts } });
  assert.deepEqual(message.parts, [
    { text: ' a ' },
    { data: { n: 1 }, mediaType: 'application/json' },
    { data: { n: 2 } },
    { raw: 'AAEC', filename: 'x', mediaType: 'a/b' },
    { url: 'https://example.org/' },
  ]);
});

test('the params of S4 and of typed clients that write null are accepted [S4-8]', () => {
  const message = { role: 'user', parts: [{ type: 'text', text: 'x' }], metadata: null };
  const nulls = { sessionId: null, historyLength: null, acceptedOutputModes: null, pushNotification: null, metadata: null };
  assert.deepEqual(legacy.decodeSend({ id: 'task-1', message, ...nulls }), {
    message: { messageId: '', role: 'ROLE_USER', parts: [{ text: 'x' }] },
    chosenTaskId: 'task-1',
    blocking: true,
  });
  const push = { url: 'https://example.org/', token: 'x', authentication: { schemes: ['bearer'] } };
  const full = legacy.decodeSend({ id: 'task-1', sessionId: 's', message, historyLength: 2, pushNotification: push });
  assert.deepEqual(
    [full.message.contextId, full.historyLength, full.push],
    ['s', 2, { ...push, authentication: { scheme: 'bearer' } }],
  );
});

test('an error names wrong params and never quotes them [S4-32]', () => {
  const message = { role: 'user', parts: [{ type: 'text', text: 'x' }] };
  const cases: [unknown, RegExp][] = [
    [{ message }, /must have required property 'id'/],
    [{ id: '', message }, /params\.id must be 1 to/],
    [{ id: 't' }, /must have required property 'message'/],
    [{ id: 't', message: { ...message, role: 'SECRET' } }, /params\.message\.role must be user or agent/],
    [{ id: 't', message: { ...message, parts: [] } }, /params\.message\.parts must NOT have fewer than 1 items/],
    [
      { id: 't', message: { ...message, parts: [{ type: 'SECRET', text: 'x' }] } },
      /parts\[0\] must be a text, file or data part/,
    ],
    [{ id: 't', message, historyLength: -1 }, /params\.historyLength must be >= 0/],
    [{ id: 't', message, sessionId: 'a\nSECRET' }, /params\.sessionId/],
  ];
  for (const [params, reason] of cases) {
    assert.throws(
      () => legacy.decodeSend(params),
      (error: unknown) => error instanceof A2AError && reason.test(error.message) && !error.message.includes('SECRET'),
    );
  }
});

test('a method without a version selects its dialect [C-6]', () => {
  const names = ['tasks/send', 'tasks/sendSubscribe', 'tasks/pushNotification/set', 'tasks/get', 'message/send', 'no/such'];
  assert.deepEqual(
    names.map(method => unversionedDialect(method).name),
    ['legacy', 'legacy', 'legacy', '0.3', '0.3', '0.3'],
  );
  const shared = ['tasks/get', 'tasks/cancel', 'tasks/resubscribe'];
  assert.deepEqual(shared.map(isAmbiguous), [true, true, true]);
  assert.deepEqual([...names.slice(0, 3), 'message/send'].map(isAmbiguous), [false, false, false, false]);
});

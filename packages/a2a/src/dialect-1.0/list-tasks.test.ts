import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { operationOf } from '../dialect.ts';
import { DIALECTS } from '../dialects.ts';
import { A2AError } from '../errors.ts';
import { decodeListTasks } from './list-tasks.ts';

test('ListTasks exists only in 1.0', () => {
  const all = Object.values(DIALECTS);
  assert.equal(operationOf(DIALECTS['1.0'], 'ListTasks', all), 'list');
  for (const dialect of all) {
    for (const method of ['tasks/list', 'undefined', 'list']) {
      assert.throws(() => operationOf(dialect, method, all), { code: 'METHOD_NOT_FOUND' });
    }
  }
});

test('defaults are 50 tasks without artifacts; empty, null and unspecified mean absent', () => {
  const nothing = { pageSize: 50, includeArtifacts: false };
  assert.deepEqual(decodeListTasks({}), nothing);
  assert.deepEqual(
    decodeListTasks({
      contextId: '',
      status: '',
      pageToken: '',
      statusTimestampAfter: '',
      pageSize: null,
      includeArtifacts: null,
    }),
    nothing,
  );
  assert.deepEqual(decodeListTasks({ status: 'TASK_STATE_UNSPECIFIED', historyLength: null, novelty: 1 }), nothing);
});

test('all members are read by their JSON and their protobuf names', () => {
  const read = {
    contextId: 'c',
    state: 'TASK_STATE_WORKING',
    pageSize: 3,
    pageToken: 't',
    historyLength: 0,
    statusSinceMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
    includeArtifacts: true,
  };
  const params = { status: 'TASK_STATE_WORKING', context_id: 'c', page_size: 3, pageToken: 't', historyLength: 0 };
  const time = '2026-01-02T03:04:05.006Z';
  assert.deepEqual(decodeListTasks({ ...params, status_timestamp_after: time, includeArtifacts: true }), read);
  assert.deepEqual(decodeListTasks({ ...params, statusTimestampAfter: time, include_artifacts: true }), read);
});

test('text, agent and duration are searched up to their limits; empty and 0 mean absent', () => {
  const nothing = { pageSize: 50, includeArtifacts: false };
  assert.deepEqual(decodeListTasks({ text: '', agent: '', minDurationMs: 0 }), nothing);
  assert.deepEqual(decodeListTasks({ text: null, agent: null, minDurationMs: null }), nothing);
  const longest = { text: 'x'.repeat(256), agent: 'a'.repeat(64), minDurationMs: 31_536_000_000 };
  assert.deepEqual(decodeListTasks(longest), { ...nothing, ...longest });
  assert.deepEqual(decodeListTasks({ min_duration_ms: 1 }), { ...nothing, minDurationMs: 1 });
  const refused = [
    { text: `${longest.text}x` },
    { agent: `${longest.agent}a` },
    { agent: 7 },
    { minDurationMs: longest.minDurationMs + 1 },
    { minDurationMs: -1 },
    { minDurationMs: 1.5 },
    { minDurationMs: '5' },
  ];
  for (const params of refused)
    assert.throws(() => decodeListTasks(params), new RegExp(`params\\.${Object.keys(params)[0]}`), JSON.stringify(params));
});

test('a time finer than a millisecond is rounded up, so that "greater or equal" holds', () => {
  const since = (time: string) => decodeListTasks({ statusTimestampAfter: time }).statusSinceMs;
  const whole = Date.UTC(2026, 0, 1);
  assert.equal(since('2026-01-01T00:00:00Z'), whole);
  assert.equal(since('2026-01-01T00:00:00.000000Z'), whole);
  assert.equal(since('2026-01-01T00:00:00.000000001Z'), whole + 1);
  assert.equal(since('2026-01-01t01:00:00.5+01:00'), whole + 500);
  for (const time of ['2026-01-01', 'now', '2026-01-01T00:00:00', '2026-99-01T00:00:00Z', 7]) {
    assert.throws(() => since(time as string), /params\.statusTimestampAfter/);
  }
});

test('any input is decoded, or refused with INVALID_PARAMS [S4-32]', () => {
  const member = fc.constantFrom(
    'contextId',
    'status',
    'pageSize',
    'pageToken',
    'historyLength',
    'statusTimestampAfter',
    'includeArtifacts',
    'text',
    'agent',
    'minDurationMs',
  );
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.dictionary(member, fc.jsonValue())), params => {
      try {
        const { pageSize } = decodeListTasks(params);
        assert(pageSize >= 1 && pageSize <= 100);
      } catch (error) {
        assert(error instanceof A2AError);
        assert.equal(error.code, 'INVALID_PARAMS');
      }
    }),
  );
});

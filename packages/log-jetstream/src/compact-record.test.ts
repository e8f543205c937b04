import assert from 'node:assert/strict';
import test from 'node:test';
import type { ArtifactUpdated, Fact, FactRecord, TaskAggregate } from '@hopline/events';
import fc from 'fast-check';
import { decodeFacts, decodeFactsOnly, encodeFacts } from './codec.ts';

const TASK = '01936f3e-7a10-7c21-a5b2-0123456789ab';
const CONTEXT = '01936f3e-7a10-8c21-a5b2-0123456789ab';
const LANE = 'call-1-1/answer';
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const METADATA = { sourceAgent: 'guide', toolCallId: 'call-1-1' };
const ARTIFACT = { name: 'streaming_result', description: 'Result of Guide', metadata: METADATA };
const CHUNK = {
  firstSeq: 28,
  lastSeq: 31,
  count: 2,
  n: 11,
  reason: 'quiet',
  heldMs: 53,
  firstAt: 1_000,
  lastAt: 1_043,
  waitMs: 0,
};

/** A chunk of two tokens, as the decider makes it. */
function chunk(patch: Partial<ArtifactUpdated> = {}, update: object = {}, artifact: object = {}): ArtifactUpdated {
  const shown = {
    artifactId: 'f5dd32e9-9fd3-8b81-ac0b-f5baa424473f',
    ...ARTIFACT,
    parts: [{ text: ' two tokens' }],
    ...artifact,
  };
  const event = {
    artifactUpdate: { taskId: TASK, contextId: CONTEXT, artifact: shown, append: true, lastChunk: false, ...update },
  };
  return {
    kind: 'artifact.updated',
    at: 1_100,
    generation: 11,
    event,
    lane: LANE,
    producer: 'call-1-1',
    attempt: 1,
    chunk: CHUNK,
    ...patch,
  };
}

function recordOf(facts: Fact[], patch: Partial<TaskAggregate> = {}): FactRecord {
  const aggregate: TaskAggregate = {
    taskId: TASK,
    contextId: CONTEXT,
    state: 'TASK_STATE_WORKING',
    generation: 11,
    at: 1_100,
    role: 'supervisor',
    profile: 'caipe',
    turn: 1,
    messageIds: ['f1d082ce-7f15-4935-8d85-34b29cabafaf'],
    lanes: {
      '1/plan': { producer: 'supervisor', attempt: 1, phase: 'closed', n: 10 },
      [LANE]: { producer: 'call-1-1', attempt: 1, phase: 'open', n: 11, artifact: { ...ARTIFACT, separateClose: true } },
    },
    calls: { 'call-1-1': { agent: 'guide' } },
    producers: { supervisor: { item: 3, attempt: 1, n: 13, lastN: 13 }, 'call-1-1': { item: 6, attempt: 1, n: 1, lastN: 11 } },
    foldedSeq: 31,
    lastNSeq: 31,
    storedBytes: 14_548,
    ...patch,
  };
  return { v: 1, facts, aggregate, startSeq: 3, startStoredAt: 1_000 };
}

const stored = (record: FactRecord) => encodeFacts(record, true);
const status: Fact = {
  kind: 'status.changed',
  at: 1_200,
  generation: 12,
  event: { statusUpdate: { taskId: TASK, contextId: CONTEXT, status: { state: 'TASK_STATE_WORKING', timestamp: '' } } },
};

/** Records that a compact form must restore. The name describes what is special about each. */
const RECORDS: [string, FactRecord][] = [
  ['a chunk', recordOf([chunk()])],
  ['a chunk that replaces', recordOf([chunk({}, { append: false })])],
  ['a last chunk', recordOf([chunk({}, { lastChunk: true })])],
  ['two chunks', recordOf([chunk({ generation: 10, at: 1_050 }), chunk()])],
  ['one trace', recordOf([chunk({ chunk: { ...CHUNK, firstTrace: TRACE, lastTrace: TRACE } })])],
  ['two traces', recordOf([chunk({ chunk: { ...CHUNK, firstTrace: TRACE, lastTrace: `${TRACE.slice(0, -2)}00` } })])],
  ['a first trace', recordOf([chunk({ chunk: { ...CHUNK, firstTrace: TRACE } })])],
  ['a last trace', recordOf([chunk({ chunk: { ...CHUNK, lastTrace: TRACE } })])],
  ['a split token', recordOf([chunk({ chunk: { ...CHUNK, splitOffset: 7 } })])],
  ['a transitory artifact', recordOf([chunk({ transitory: true })])],
  ['a source', recordOf([chunk({ source: { mode: 'm', node: 'n' } as never })])],
  ['a leap', recordOf([chunk({ lostAfter: 3 })])],
  ['a fact without a chunk', recordOf([(({ chunk: _chunk, ...rest }) => rest)(chunk())])],
  ['metadata of the event', recordOf([chunk({}, { metadata: { a: 1 } })])],
  ['another task', recordOf([chunk({}, { taskId: 'other' })])],
  ['another name', recordOf([chunk({}, {}, { name: 'renamed' })])],
  ['no name', recordOf([chunk({}, {}, { name: undefined })])],
  ['other metadata', recordOf([chunk({}, {}, { metadata: { ...METADATA, more: 1 } })])],
  ['two parts', recordOf([chunk({}, {}, { parts: [{ text: 'a' }, { text: 'b' }] })])],
  ['metadata of the part', recordOf([chunk({}, {}, { parts: [{ text: 'a', metadata: {} }] })])],
  ['a part with data', recordOf([chunk({}, {}, { parts: [{ data: 1 }] })])],
  ['an earlier attempt', recordOf([chunk({ attempt: 2 })])],
  ['another producer', recordOf([chunk({ producer: 'call-2-1' })])],
  ['a lane that is gone', recordOf([chunk({ lane: 'gone' })])],
  ['a lane with the name of a member of objects', recordOf([chunk({ lane: 'constructor' })])],
  ['a fact after the chunk', recordOf([chunk(), status], { generation: 12, at: 1_200 })],
  ['no facts', recordOf([])],
  ['other times', recordOf([chunk()], { at: 1_101, generation: 20 })],
  ['no lanes and calls', recordOf([status], { lanes: {}, calls: {}, producers: {} })],
  ['a context of a client', recordOf([chunk({}, { contextId: 'c' })], { contextId: 'c' })],
  ['a later turn that waits', recordOf([status], { turn: 2, state: 'TASK_STATE_INPUT_REQUIRED', inputRequest: { n: 1, at: 5 } })],
  ['an agent of its own', recordOf([status], { role: 'agent.guide', owner: { tenant: 't', subject: 's' }, hasHistory: true })],
  ['a takeover', { ...recordOf([chunk()]), takeover: { at: 1, cause: 'lost' } }],
  ['a copy', { ...recordOf([]), copied: { part: 1, last: true, facts: [chunk()] } }],
];

for (const [what, record] of RECORDS) {
  test(`a compact record restores ${what}`, () => {
    // A member that is undefined is not stored in either form.
    const whole = JSON.parse(JSON.stringify(record)) as FactRecord;
    assert.deepEqual(decodeFacts(stored(record), TASK), whole);
    assert.deepEqual(decodeFactsOnly(stored(record), TASK), whole.facts);
    // A decoded record is compact again.
    assert.deepEqual(stored(decodeFacts(stored(record), TASK)!).length, stored(record).length);
  });
}

test('a context id that a server did not make is stored', () => {
  const record = recordOf([status], { taskId: 't1', contextId: 'c1' });
  assert.deepEqual(decodeFacts(stored(record), 't1'), record);
});

test('a record of two tokens takes 916 bytes instead of 1,446, and a further chunk in it 264 instead of 611', () => {
  const bytesOf = (...facts: Fact[]) => [encodeFacts(recordOf(facts), false).length, stored(recordOf(facts)).length];
  assert.deepEqual(bytesOf(chunk()), [1446, 916]);
  assert.deepEqual(bytesOf(chunk(), chunk()), [2057, 1180]);
});

test('a payload with a broken member is not a record, whichever member it is', () => {
  const whole = JSON.parse(Buffer.from(stored(recordOf([chunk()]))).toString()) as { facts: object[]; aggregate: object };
  const of = (patch: object) => Buffer.from(JSON.stringify({ ...whole, ...patch }));
  const withFact = (patch: object) => of({ facts: [{ ...whole.facts[0], ...patch }] });
  const withAggregate = (patch: object) => of({ aggregate: { ...whole.aggregate, ...patch } });
  for (const payload of [
    of({ v: 3 }),
    of({ facts: {} }),
    of({ facts: [null] }),
    of({ aggregate: null }),
    of({ startSeq: null }),
    withAggregate({ taskId: 'other' }),
    withAggregate({ contextId: 1 }),
    withAggregate({ lanes: null }),
    withAggregate({ lanes: {} }),
    withAggregate({ lanes: { [LANE]: { artifact: null } } }),
    withFact({ lane: 'gone' }),
    withFact({ chunk: null }),
    withFact({ generation: undefined }),
  ])
    assert.equal(decodeFacts(payload, TASK), undefined, payload.toString());
  assert.equal(decodeFacts(of({}), 'own-task'), undefined, 'a task id of another form has no context of its own');
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.jsonValue(),
      fc.constantFrom('facts', 'aggregate', 'chunk', 'lanes'),
      (value, other, place) => {
        const patch = place === 'lanes' ? { aggregate: { lanes: value } } : { [place]: place === 'chunk' ? other : value };
        decodeFacts(of({ ...patch, facts: place === 'facts' ? value : [{ kind: 'chunk', lane: LANE, chunk: other }] }), TASK);
      },
    ),
  );
});

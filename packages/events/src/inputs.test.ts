import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type InputRecord, mayAppend, type Role, type Writer, writerOf } from './index.ts';

const message = (role: Role): InputRecord => {
  const content = { messageId: 'm', role: 'ROLE_USER', parts: [] } as const;
  return {
    v: 1,
    at: 1,
    from: 'client',
    input: { kind: 'message', message: { ...content, parts: [] }, contextId: 'c', role, profile: 'caipe' },
  };
};
const cancel: InputRecord = { v: 1, at: 1, from: 'client', input: { kind: 'cancel' } };
const timeout: InputRecord = { v: 1, at: 1, from: 'relay', input: { kind: 'timeout', request: 1 } };
const output = (id: string, agent: string): InputRecord => ({
  v: 1,
  at: 1,
  from: { id, agent, turn: 1, attempt: 1 },
  n: 1,
  inputs: [],
});

const CASES: [what: string, record: InputRecord, writers: Writer[]][] = [
  ['a message for the supervisor', message('supervisor'), ['client']],
  ['a message for an agent', message('agent.guide'), ['client', 'agent.guide']],
  ['a cancel', cancel, ['client', 'agent.guide', 'agent.files']],
  ['a timeout', timeout, ['relay']],
  ['output of the supervisor', output('supervisor', 'supervisor'), ['supervisor']],
  ['output of a called agent', output('call-1-1', 'guide'), ['agent.guide']],
  ['output of an agent that names itself supervisor', output('supervisor', 'guide'), ['supervisor']],
  ['output of an agent with the name of a service', output('agent', 'supervisor'), []],
];

test('a record may be appended only by a service that it may name as its writer', () => {
  const writers: Writer[] = ['client', 'relay', 'supervisor', 'agent.guide', 'agent.files'];
  for (const [what, record, permitted] of CASES)
    assert.deepEqual(
      writers.filter(writer => mayAppend(writer, record)),
      permitted,
      what,
    );
});

test('the writer of a record follows from its claim', () => {
  assert.deepEqual(
    CASES.map(([, record]) => writerOf(record)),
    ['client', 'client', 'client', 'relay', 'supervisor', 'agent.guide', 'supervisor', 'agent.supervisor'],
  );
});

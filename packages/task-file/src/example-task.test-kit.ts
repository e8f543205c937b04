import type { ClientRecord, Fact, FactRecord, TaskAggregate } from '@hopline/events';
import type { FactsEntry, InputEntry, RecordEntry, TaskHeader } from './format.ts';

const TASK_ID = '01a1fc64-e2c9-7e6c-b06a-b36271f9e46f';
const CONTEXT_ID = 'c-1';
const START_AT = 1_760_000_000_000;

export const HEADER: TaskHeader = {
  format: 'hopline.task',
  version: 1,
  hopline: '0.1.0',
  exportedAt: START_AT + 60_000,
  taskId: TASK_ID,
  contextId: CONTEXT_ID,
  role: 'supervisor',
  profile: 'caipe',
  agents: ['guide'],
  contains: ['inputs', 'facts'],
};

export const OUTCOME = { generation: 0, state: 'TASK_STATE_SUBMITTED' } as const;

const MESSAGE = { messageId: 'm1', role: 'ROLE_USER' as const, parts: [{ text: 'explain hopline' }] };

/** A task of one message and one artifact: one record that creates it, and one record of facts for each of `texts`. */
export function exampleEntries(texts: readonly string[] = ['How', ' it works', ' 🎯\n']): RecordEntry[] {
  return [...exampleStream(texts)];
}

export function* exampleStream(texts: Iterable<string>): Generator<RecordEntry, void> {
  yield inputEntry();
  let number = 1;
  yield factsEntry(number, 'TASK_STATE_SUBMITTED', {
    kind: 'task.created',
    at: START_AT,
    generation: 1,
    event: {
      task: {
        id: TASK_ID,
        contextId: CONTEXT_ID,
        status: { state: 'TASK_STATE_SUBMITTED', timestamp: '2025-10-09T08:53:20.000Z' },
        history: [MESSAGE],
      },
    },
    role: 'supervisor',
    profile: 'caipe',
  });
  for (const text of texts) {
    number += 1;
    yield factsEntry(number, 'TASK_STATE_WORKING', {
      kind: 'artifact.updated',
      at: START_AT + number,
      generation: number,
      event: {
        artifactUpdate: {
          taskId: TASK_ID,
          contextId: CONTEXT_ID,
          artifact: { artifactId: 'a1', name: 'streaming_result', parts: [{ text }] },
          append: number > 2,
          lastChunk: false,
        },
      },
      lane: 'call-1-1/answer',
      producer: 'call-1-1',
      attempt: 1,
    });
  }
}

function inputEntry(): InputEntry {
  const record: ClientRecord = {
    v: 1,
    at: START_AT,
    from: 'client',
    input: { kind: 'message', message: MESSAGE, contextId: CONTEXT_ID, role: 'supervisor', profile: 'caipe' },
  };
  return {
    kind: 'input',
    seq: 7,
    storedAt: START_AT,
    writer: 'client',
    record,
    trace: { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` },
  };
}

function factsEntry(number: number, state: TaskAggregate['state'], fact: Fact): FactsEntry {
  const aggregate: TaskAggregate = {
    taskId: TASK_ID,
    contextId: CONTEXT_ID,
    state,
    generation: number,
    at: fact.at,
    role: 'supervisor',
    profile: 'caipe',
    turn: 1,
    messageIds: ['m1'],
    lanes: {},
    calls: {},
    producers: {},
    foldedSeq: 7,
  };
  const record: FactRecord = { v: 1, facts: [fact], aggregate, startSeq: number === 1 ? 0 : 10, startStoredAt: START_AT };
  return { kind: 'facts', seq: 10 * number, storedAt: START_AT + number, generation: number, record };
}

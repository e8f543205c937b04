import { isObject, isTime, type JsonObject, TASK_STATES, type TaskState } from '@hopline/a2a';
import { decodeInputRecord, type Fact, type FactRecord, isRole, isTaskId, isWriter, type TraceCarrier } from '@hopline/events';
import {
  type FactsEntry,
  type InputEntry,
  TASK_FORMAT,
  type TaskEnd,
  TaskFileError,
  type TaskHeader,
  type TaskProgress,
} from './format.ts';

/** Base64url of SHA-256. */
const SUM = /^[A-Za-z0-9_-]{43}$/;

type Check = (value: unknown) => boolean;
type Members = { readonly [name: string]: Check };

const isText: Check = value => typeof value === 'string';
const isCount: Check = value => Number.isSafeInteger(value) && Number(value) >= 0;
const isPositive: Check = value => isCount(value) && value !== 0;
const isTaskState = (value: unknown): value is TaskState => TASK_STATES.some(state => state === value);
const optional =
  (check: Check): Check =>
  value =>
    value === undefined || check(value);
const arrayOf =
  (check: Check): Check =>
  value =>
    Array.isArray(value) && value.every(check);
const objectOf =
  (members: Members): Check =>
  value =>
    isObject(value) && Object.entries(members).every(([name, check]) => check(value[name]));

const isKind: Check = value => value === 'inputs' || value === 'facts';
const isOwner = objectOf({ tenant: optional(isText), subject: optional(isText) });
const isPart = objectOf({ text: optional(isText), raw: optional(isText), url: optional(isText), metadata: optional(isObject) });
const isMessage = objectOf({ messageId: isText, role: isText, parts: arrayOf(isPart), metadata: optional(isObject) });
const isArtifact = objectOf({ artifactId: isText, parts: arrayOf(isPart), metadata: optional(isObject) });
const isStatus = objectOf({ state: isTaskState, message: optional(isMessage), timestamp: optional(isText) });

const PROGRESS = objectOf({
  sum: value => typeof value === 'string' && SUM.test(value),
  inputs: isCount,
  facts: isCount,
  lastInputSeq: isCount,
  lastFactsSeq: isCount,
  generation: isCount,
  state: optional(isTaskState),
});

const HEADER = objectOf({
  hopline: isText,
  exportedAt: isTime,
  taskId: value => typeof value === 'string' && isTaskId(value),
  contextId: isText,
  role: value => typeof value === 'string' && isRole(value),
  profile: isText,
  owner: optional(isOwner),
  agents: arrayOf(isText),
  contains: value => Array.isArray(value) && value.length > 0 && value.every(isKind),
  partial: optional(arrayOf(isKind)),
  redacted: optional(arrayOf(value => value === 'services' || value === 'text')),
});

const END = objectOf({
  inputs: isCount,
  facts: isCount,
  lastInputSeq: isCount,
  lastFactsSeq: isCount,
  generation: isCount,
  state: isTaskState,
});

/** Members that folding or showing a fact relies on. */
const FACTS: { readonly [K in Fact['kind']]: Members } = {
  'task.created': {
    generation: isPositive,
    event: objectOf({
      task: objectOf({
        id: isText,
        contextId: isText,
        status: isStatus,
        history: optional(arrayOf(isMessage)),
        artifacts: optional(arrayOf(isArtifact)),
        metadata: optional(isObject),
      }),
    }),
    role: value => typeof value === 'string' && isRole(value),
    profile: isText,
    owner: optional(isOwner),
    earlierTasks: optional(arrayOf(isText)),
  },
  'message.received': { message: isMessage, turn: isPositive },
  'status.changed': {
    generation: isPositive,
    event: objectOf({
      statusUpdate: objectOf({ taskId: isText, contextId: isText, status: isStatus, metadata: optional(isObject) }),
    }),
    history: optional(arrayOf(isMessage)),
  },
  'lane.opened': { lane: isText, producer: isText, attempt: isCount, artifact: isObject },
  'artifact.updated': {
    generation: isPositive,
    event: objectOf({
      artifactUpdate: objectOf({ taskId: isText, contextId: isText, artifact: isArtifact, metadata: optional(isObject) }),
    }),
    lane: isText,
    producer: isText,
  },
  'call.started': { call: isText, agent: isText },
  'call.ended': { call: isText, agent: isText, state: isTaskState, history: optional(arrayOf(isMessage)) },
  'step.recorded': { step: isText },
  'remote-run.started': { producer: isText, attempt: isCount },
  'agent-step.recorded': { producer: isText, attempt: isCount, step: isText, n: isPositive },
};

const AGGREGATE = objectOf({
  taskId: isText,
  contextId: isText,
  state: isTaskState,
  generation: isCount,
  at: isTime,
  role: value => typeof value === 'string' && isRole(value),
  profile: isText,
  owner: optional(isOwner),
  turn: isPositive,
  messageIds: arrayOf(isText),
  lanes: isObject,
  calls: isObject,
  producers: isObject,
  foldedSeq: isCount,
});

export function isProgress(value: unknown): value is TaskProgress {
  return PROGRESS(value);
}

export function decodeHeader(value: JsonObject, line: number): TaskHeader {
  if (value.format !== TASK_FORMAT || !HEADER(value))
    throw malformed(line, 'this header lacks a member, or one has another type');
  return value as unknown as TaskHeader;
}

export function decodeEnd(value: JsonObject, line: number): TaskEnd {
  if (!END(value)) throw malformed(line, 'the end lacks a member, or one has another type');
  return value as unknown as TaskEnd;
}

const CARRIER = optional(objectOf({ traceparent: optional(isText), tracestate: optional(isText) }));

export function decodeInputLine(value: JsonObject, line: number): InputEntry {
  const { seq, storedAt, writer, trace } = value;
  if (!isPositive(seq) || !isTime(storedAt) || typeof writer !== 'string' || !isWriter(writer) || !CARRIER(trace)) {
    throw malformed(line, 'this input lacks a member, or one has another type');
  }
  const record = decodeInputRecord(value.record);
  if (record === 'unknown version')
    throw new TaskFileError('newer', line, 'the input is of a later version: use a newer Hopline');
  if (typeof record === 'string') throw malformed(line, `the record is not an input: ${record}`);
  return {
    kind: 'input',
    seq: Number(seq),
    storedAt: Number(storedAt),
    writer,
    record,
    ...(trace !== undefined && { trace: trace as TraceCarrier }),
  };
}

export function decodeFactsLine(value: JsonObject, line: number): FactsEntry {
  const { seq, storedAt, generation, trace, record } = value;
  if (!isPositive(seq) || !isTime(storedAt) || !isCount(generation) || !CARRIER(trace) || !isObject(record)) {
    throw malformed(line, 'this record of facts lacks a member, or one has another type');
  }
  if (Number.isInteger(record.v) && Number(record.v) > 1) {
    throw new TaskFileError('newer', line, 'the record is of a later version: use a newer Hopline');
  }
  const { facts } = record;
  if (record.v !== 1 || !Array.isArray(facts) || !AGGREGATE(record.aggregate) || !isCount(record.startSeq)) {
    throw malformed(line, 'the record has no facts or no aggregate, or a member of them has another type');
  }
  for (const fact of facts) requireFact(fact, line);
  return {
    kind: 'facts',
    seq: Number(seq),
    storedAt: Number(storedAt),
    generation: Number(generation),
    record: record as unknown as FactRecord,
    ...(trace !== undefined && { trace: trace as TraceCarrier }),
  };
}

function requireFact(fact: unknown, line: number): void {
  if (!isObject(fact) || typeof fact.kind !== 'string') throw malformed(line, 'not a fact');
  if (!Object.hasOwn(FACTS, fact.kind))
    throw new TaskFileError('newer', line, 'the fact has an unknown kind: use a newer Hopline');
  const members = FACTS[fact.kind as Fact['kind']];
  if (!isTime(fact.at) || !objectOf(members)(fact)) {
    throw malformed(line, `a member of the fact ${fact.kind} is missing or has another type`);
  }
}

const malformed = (line: number, detail: string) => new TaskFileError('malformed', line, detail);

import { isObject, isTime, type JsonObject, takesFastPaths } from '@hopline/a2a';
import {
  type ArtifactUpdated,
  type ChunkProvenance,
  contextIdOf,
  decodeInputRecord,
  entryOf,
  type Fact,
  type FactRecord,
  type InputRecord,
  isTaskId,
  type LaneArtifact,
  type LaneState,
  type RecordFault,
  type TaskAggregate,
  type TraceCarrier,
  type Work,
} from '@hopline/events';
import { requireRecordId } from '@hopline/log';
import { headers, type MsgHdrs } from '@nats-io/nats-core';
import type { Headers } from './message-headers.ts';

/**
 * Encodes records as payloads and headers, and decodes them. Any client may publish on a subject: decoders check every member
 * that readers rely on, so that no payload stops a reader. PROTOCOL.md section 2.
 */
const TRACEPARENT = 'traceparent';
const TRACESTATE = 'tracestate';
/**
 * A copy that servers do not touch: 2.11 and 2.12 may rewrite `traceparent` when message tracing is on
 * (nats-architecture-and-design #392).
 */
const HOPLINE_TRACEPARENT = 'Hopline-Traceparent';
export const MESSAGE_ID = 'Nats-Msg-Id';
const EXPECTED_SEQUENCE = 'Nats-Expected-Last-Subject-Sequence';
/** `text` if a record of facts only adds text to open artifacts. */
const CONTINUES = 'Hopline-Continues';
const TEXT = 'text';

const TRACEPARENT_FORM = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
/** W3C Trace Context 3.3.1.5 requires at least 512 characters to be propagated. Longer values are dropped. */
const TRACESTATE_FORM = /^[\x20-\x7e]{1,512}$/;

export type RecordHeaders = {
  id: string;
  expected?: number | undefined;
  trace?: TraceCarrier | undefined;
  /**
   * False omits the copy: for inputs of agents, whose context becomes a link and not a parent. The copy costs 1 µs of CPU and 76 bytes per
   * token.
   */
  copiesTrace?: boolean | undefined;
  /** As in AppendOptions. */
  continuesText?: boolean | undefined;
};

export function encodePayload(record: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(record));
}

/** Always a new object, because nats.js changes its argument. */
export function encodeHeaders({ id, expected, trace, copiesTrace = true, continuesText = false }: RecordHeaders): MsgHdrs {
  requireRecordId(id);
  const encoded = headers();
  encoded.append(MESSAGE_ID, id);
  if (expected !== undefined) encoded.append(EXPECTED_SEQUENCE, `${expected}`);
  if (continuesText) encoded.append(CONTINUES, TEXT);
  if (trace?.traceparent && TRACEPARENT_FORM.test(trace.traceparent)) {
    encoded.append(TRACEPARENT, trace.traceparent);
    if (copiesTrace) encoded.append(HOPLINE_TRACEPARENT, trace.traceparent);
    if (trace.tracestate && TRACESTATE_FORM.test(trace.tracestate)) encoded.append(TRACESTATE, trace.tracestate);
  }
  return encoded;
}

/** `{ trace }` or `{}`, for spreading. */
export function decodeTrace(received: Headers | undefined): { trace?: TraceCarrier } {
  if (!received) return {};
  const traceparent = received.get(HOPLINE_TRACEPARENT) || received.get(TRACEPARENT);
  if (!TRACEPARENT_FORM.test(traceparent)) return {};
  const tracestate = received.get(TRACESTATE);
  return { trace: { traceparent, ...(tracestate && { tracestate }) } };
}

/** Whether a record of facts is marked as one that only adds text to open artifacts. */
export function decodeContinuesText(received: Headers | undefined): boolean {
  return received?.get(CONTINUES) === TEXT;
}

/** `{ id }` of the append or `{}`, for spreading into a record of facts. */
export function idOf(headers: Headers | undefined): { id?: string } {
  const id = headers?.get(MESSAGE_ID);
  return id ? { id } : {};
}

/** The record, or the reason why the payload is not one. */
export function decodeInput(payload: Uint8Array): InputRecord | RecordFault {
  return decodeInputRecord(parse(payload));
}

/** `isCompact`: in the form that only readers of COMPACT_VERSION understand. */
export function encodeFacts(record: FactRecord, isCompact: boolean): Uint8Array {
  return encodePayload(isCompact && record.v === 1 ? compactRecord(record) : record);
}

export function decodeFacts(payload: Uint8Array, taskId: string): FactRecord | undefined {
  const record = parse(payload);
  return factRecordOf(record?.v === COMPACT_VERSION ? expandRecord(record, taskId) : record, taskId);
}

/** The text with which relays begin a payload of facts of version 1, and the text after the facts. */
const FACTS_START = Buffer.from('{"v":1,"facts":');
const AGGREGATE_START = ',"aggregate":{"taskId":"';

/**
 * Decodes only the facts of a record, because parsing the rest would take as long again. The whole payload is parsed only if it has another
 * form. A member with the same name inside a fact does no harm: the text before it would not be a complete array.
 */
export function decodeFactsOnly(payload: Uint8Array, taskId: string): readonly Fact[] | undefined {
  if (!takesFastPaths()) return decodeFacts(payload, taskId)?.facts;
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  const isWhole = bytes.subarray(0, FACTS_START.length).equals(FACTS_START);
  const end = isWhole ? bytes.indexOf(`${AGGREGATE_START}${taskId}"`, FACTS_START.length, 'latin1') : -1;
  if (end > 0) {
    try {
      const facts: unknown = JSON.parse(bytes.toString('utf8', FACTS_START.length, end));
      if (areFacts(facts)) return facts;
    } catch {
      // The payload has another form; it is parsed as a whole below.
    }
  }
  return decodeFacts(payload, taskId)?.facts;
}

function factRecordOf(record: JsonObject | undefined, taskId: string): FactRecord | undefined {
  if (record?.v !== 1 || !Number.isInteger(record.startSeq) || !isTime(record.startStoredAt)) return undefined;
  const { facts, aggregate, copied } = record;
  const isValid =
    areFacts(facts) && isObject(aggregate) && aggregate.taskId === taskId && (copied === undefined || areCopied(copied));
  return isValid && Number.isInteger(aggregate.generation) ? (record as FactRecord) : undefined;
}

/** The version of work items that this code reads and writes. Records of facts have their own (COMPACT_VERSION). */
const WORK_VERSION = 1;

/** A record of facts that a later version wrote. */
export function isLaterFacts(payload: Uint8Array): boolean {
  return versionOf(payload) > COMPACT_VERSION;
}

/** A work item that a later version wrote. */
export function isLaterWork(payload: Uint8Array): boolean {
  return versionOf(payload) > WORK_VERSION;
}

/** 0 if the payload has none. */
function versionOf(payload: Uint8Array): number {
  const version = parse(payload)?.v;
  return Number.isInteger(version) ? Number(version) : 0;
}

export function decodeWork(payload: Uint8Array): Work | undefined {
  const work = parse(payload);
  const isValid = work?.v === WORK_VERSION && typeof work.taskId === 'string' && isTaskId(work.taskId) && isObject(work.message);
  if (!isValid || typeof work.contextId !== 'string' || !Number.isInteger(work.turn)) return undefined;
  const { newest, ...rest } = work as Work;
  const isKnown = isObject(newest) && Number.isInteger(newest.seq) && isObject(newest.record);
  return isKnown && factRecordOf(newest.record, rest.taskId) !== undefined ? { ...rest, newest } : rest;
}

export function decodeValue(payload: Uint8Array): Record<string, unknown> | undefined {
  return parse(payload);
}

function parse(payload: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function hasKind(value: unknown): value is JsonObject {
  return isObject(value) && typeof value.kind === 'string';
}

function areFacts(value: unknown): value is Fact[] {
  return Array.isArray(value) && value.every(hasKind);
}

function areCopied(value: unknown): boolean {
  return isObject(value) && Number.isInteger(value.part) && typeof value.last === 'boolean' && areFacts(value.facts);
}

/**
 * Version 2 of a stored record of facts: a record of version 1 without the members that follow from its other members. A reader needs nothing but the record
 * and its task id to restore it, so the newest record of a task still suffices for a takeover. PROTOCOL.md section 4.5.
 */
export const COMPACT_VERSION = 2;

/** A chunk of a lane whose artifact is in the aggregate: `artifact.updated` without the members of the lane. */
type StoredChunk = {
  kind: 'chunk';
  at: number;
  generation: number;
  lane: string;
  artifactId: string;
  text: string;
  /** The chunk begins or replaces the artifact. Absent: it appends. */
  append?: false;
  chunk: Omit<ChunkProvenance, 'firstTrace' | 'lastTrace'> & {
    firstTrace?: string;
    lastTrace?: string;
    /** `firstTrace` and `lastTrace`, if they are equal. */
    trace?: string;
  };
};

/** The values of members that are absent from a stored aggregate. */
const DEFAULTS = { state: 'TASK_STATE_WORKING', role: 'supervisor', turn: 1 } as const;

/** Members of an `artifact.updated` that a `chunk` restores; one with any other member is stored as it is. */
const FACT_MEMBERS = 8;
const UPDATE_MEMBERS = 5;

/** The stored form of a record of version 1, for JSON. */
function compactRecord(record: FactRecord): object {
  const { aggregate, facts } = record;
  const compacted = facts.map(fact => (fact.kind === 'artifact.updated' ? (chunkOf(fact, aggregate) ?? fact) : fact));
  return { ...record, v: COMPACT_VERSION, facts: compacted, aggregate: compactAggregate(aggregate, facts) };
}

/** The record of version 1 that `compactRecord` stored. Members that readers rely on are checked by the caller. */
function expandRecord(stored: JsonObject, taskId: string): JsonObject | undefined {
  const { facts, aggregate } = stored;
  if (!Array.isArray(facts) || !isObject(aggregate)) return undefined;
  const expanded = expandAggregate(aggregate, facts, taskId);
  if (typeof expanded.contextId !== 'string' || !isObject(expanded.lanes)) return undefined;
  const restored: unknown[] = [];
  for (const fact of facts) {
    const whole = fact?.kind === 'chunk' ? expandChunk(fact, expanded as TaskAggregate) : fact;
    if (whole === undefined) return undefined;
    restored.push(whole);
  }
  return { ...stored, v: 1, facts: restored, aggregate: expanded };
}

function compactAggregate(aggregate: TaskAggregate, facts: readonly Fact[]): Partial<TaskAggregate> {
  const { taskId, contextId, state, generation, at, role, turn, lanes, calls, ...rest } = aggregate;
  return {
    ...(contextId !== contextIdOf(taskId) && { contextId }),
    ...(state !== DEFAULTS.state && { state }),
    ...(generation !== newestGeneration(facts) && { generation }),
    ...(at !== facts.at(-1)?.at && { at }),
    ...(role !== DEFAULTS.role && { role }),
    ...(turn !== DEFAULTS.turn && { turn }),
    ...(!isEmpty(lanes) && { lanes }),
    ...(!isEmpty(calls) && { calls }),
    ...rest,
  };
}

function expandAggregate(stored: object, facts: readonly Fact[], taskId: string): Partial<TaskAggregate> {
  const generation = newestGeneration(facts);
  const implied = { taskId, contextId: contextIdOf(taskId), ...DEFAULTS, generation, at: facts.at(-1)?.at, lanes: {}, calls: {} };
  return { ...implied, ...stored } as Partial<TaskAggregate>;
}

/** Facts in the stored form have their generation as well. */
function newestGeneration(facts: readonly Fact[]): number | undefined {
  return (facts as readonly { generation?: number }[]).findLast(fact => fact?.generation !== undefined)?.generation;
}

function isEmpty(entries: object | undefined): boolean {
  return entries !== undefined && Object.keys(entries).length === 0;
}

/** Undefined for a fact that does not follow from its lane as the record leaves it: the last chunk, for example, closes the lane. */
function chunkOf(fact: ArtifactUpdated, aggregate: TaskAggregate): StoredChunk | undefined {
  const { at, generation, event, lane, producer, attempt, chunk } = fact;
  const { artifact, append } = event.artifactUpdate;
  const state = entryOf(aggregate.lanes, lane);
  if (chunk === undefined || Object.keys(fact).length !== FACT_MEMBERS || !isOfTask(event.artifactUpdate, aggregate))
    return undefined;
  if (state?.producer !== producer || state.attempt !== attempt || !isOfLane(artifact, state)) return undefined;
  const [part] = artifact.parts;
  if (artifact.parts.length !== 1 || part?.text === undefined || Object.keys(part).length !== 1) return undefined;
  const { artifactId } = artifact;
  const stored = { kind: 'chunk', at, generation, lane, artifactId, text: part.text, chunk: withOneTrace(chunk) } as const;
  return append ? stored : { ...stored, append: false };
}

function isOfTask(update: ArtifactUpdated['event']['artifactUpdate'], { taskId, contextId }: TaskAggregate): boolean {
  const isOwn = update.taskId === taskId && update.contextId === contextId;
  return (
    isOwn && update.lastChunk === false && typeof update.append === 'boolean' && Object.keys(update).length === UPDATE_MEMBERS
  );
}

function isOfLane(artifact: ArtifactUpdated['event']['artifactUpdate']['artifact'], { artifact: declared }: LaneState): boolean {
  if (declared === undefined) return false;
  const { artifactId: _id, parts: _parts, ...own } = artifact;
  const shown = shownMembers(declared);
  const names = Object.keys(own) as (keyof typeof shown)[];
  return names.length === Object.keys(shown).length && names.every(name => isSame(own[name], shown[name]));
}

/** The decider takes the members from the lane, so they are identical unless they were decoded. */
function isSame(own: unknown, shown: unknown): boolean {
  return own === shown || JSON.stringify(own) === JSON.stringify(shown);
}

/** The members of a lane's artifact that each of its events repeats. */
function shownMembers({ id: _id, transitory: _transitory, separateClose: _separateClose, ...shown }: LaneArtifact) {
  return shown;
}

function withOneTrace({ firstTrace, lastTrace, ...chunk }: ChunkProvenance): StoredChunk['chunk'] {
  if (firstTrace !== undefined && firstTrace === lastTrace) return { ...chunk, trace: firstTrace };
  return { ...chunk, ...(firstTrace !== undefined && { firstTrace }), ...(lastTrace !== undefined && { lastTrace }) };
}

function expandChunk(stored: StoredChunk, aggregate: TaskAggregate): ArtifactUpdated | undefined {
  const { at, generation, lane, artifactId, text, append = true } = stored;
  const state = entryOf(aggregate.lanes, lane);
  if (!isObject(state?.artifact) || !isObject(stored.chunk)) return undefined;
  const { taskId, contextId } = aggregate;
  const { trace, ...chunk } = stored.chunk;
  const artifact = { artifactId, ...shownMembers(state.artifact), parts: [{ text }] };
  return {
    kind: 'artifact.updated',
    at,
    generation,
    event: { artifactUpdate: { taskId, contextId, artifact, append, lastChunk: false } },
    lane,
    producer: state.producer,
    attempt: state.attempt,
    chunk: trace === undefined ? chunk : { ...chunk, firstTrace: trace, lastTrace: trace },
  };
}

import { isObject, type JsonObject } from '@hopline/a2a';
import {
  type ArtifactUpdated,
  type ChunkProvenance,
  contextIdOf,
  entryOf,
  type Fact,
  type FactRecord,
  type LaneArtifact,
  type LaneState,
  type TaskAggregate,
} from '@hopline/events';

/**
 * Version 2 of a stored record of facts: a record of version 1 without the members that can be derived from its others. A reader needs
 * nothing but the record and its task id to restore it, so the newest record of a task still suffices for a takeover. PROTOCOL.md section
 * 4.5.
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

/** The values of members that a stored aggregate leaves out. */
const DEFAULTS = { state: 'TASK_STATE_WORKING', role: 'supervisor', turn: 1 } as const;

/** Members of an `artifact.updated` that a `chunk` restores. An event with any other member is stored unchanged. */
const FACT_MEMBERS = 8;
const UPDATE_MEMBERS = 5;

/** The stored form of a record of version 1, for JSON. */
export function compactRecord(record: FactRecord): object {
  const { aggregate, facts } = record;
  const compacted = facts.map(fact => (fact.kind === 'artifact.updated' ? (chunkOf(fact, aggregate) ?? fact) : fact));
  return { ...record, v: COMPACT_VERSION, facts: compacted, aggregate: compactAggregate(aggregate, facts) };
}

/** The record of version 1 that `compactRecord` stored. Members that readers rely on are checked by the caller. */
export function expandRecord(stored: JsonObject, taskId: string): JsonObject | undefined {
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

/** Undefined for a fact that cannot be derived from its lane as it is after the record. For example, the last chunk closes the lane. */
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
  const isOfThisTask = update.taskId === taskId && update.contextId === contextId;
  return (
    isOfThisTask &&
    update.lastChunk === false &&
    typeof update.append === 'boolean' &&
    Object.keys(update).length === UPDATE_MEMBERS
  );
}

function isOfLane(artifact: ArtifactUpdated['event']['artifactUpdate']['artifact'], { artifact: declared }: LaneState): boolean {
  if (declared === undefined) return false;
  const { artifactId: _id, parts: _parts, ...members } = artifact;
  const shown = shownMembers(declared);
  const names = Object.keys(members) as (keyof typeof shown)[];
  return names.length === Object.keys(shown).length && names.every(name => isSame(members[name], shown[name]));
}

/** The decider takes the members from the lane, so they are identical unless they were decoded. */
function isSame(member: unknown, shown: unknown): boolean {
  return member === shown || JSON.stringify(member) === JSON.stringify(shown);
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

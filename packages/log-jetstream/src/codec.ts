/*
 * Encodes records as payloads and headers, and decodes them. Any client may publish on a subject: decoders check every member
 * that readers rely on, so that no payload stops a reader. PROTOCOL.md section 2.
 */

import { isObject, isTime, type JsonObject, parseObject, takesFastPaths } from '@hopline/a2a';
import {
  decodeInputRecord,
  type Fact,
  type FactRecord,
  type InputRecord,
  isTaskId,
  type RecordFault,
  type TraceCarrier,
  type Work,
} from '@hopline/events';
import { relayOfFactsId, requireRecordId, type StoredFacts } from '@hopline/log';
import { headers, type MsgHdrs } from '@nats-io/nats-core';
import { COMPACT_VERSION, compactRecord, expandRecord } from './compact-record.ts';
import type { Headers } from './message-headers.ts';

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
   * False omits the copy. Inputs of agents do not need it, because their context becomes a link and not a parent; the copy costs 1 µs of
   * CPU and 76 bytes per token.
   */
  copiesTrace?: boolean | undefined;
  /** See AppendOptions. */
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

/** The relay that stored a record, and its trace, for spreading. */
export function originOf(headers: Headers | undefined): Pick<StoredFacts, 'relay' | 'trace'> {
  return { ...relayOfFactsId(headers?.get(MESSAGE_ID) ?? ''), ...decodeTrace(headers) };
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

/** The text that precedes the facts in a payload of version 1 as relays write it, and the text that follows them. */
const FACTS_START = Buffer.from('{"v":1,"facts":');
const AGGREGATE_START = ',"aggregate":{"taskId":"';

/**
 * Decodes only the facts of a record, because parsing the rest would take as long again. The whole payload is parsed only if it has another
 * form. A member of the same name inside a fact does no harm, because the text before it is not a complete array.
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
  return parseObject(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8'));
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

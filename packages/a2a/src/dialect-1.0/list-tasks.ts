import { invalidMember } from '../errors.ts';
import { type JsonObject, present, text } from '../json-value.ts';
import type { ListTasksRequest } from '../requests.ts';
import { flag, historyLength, optionalId } from '../schema/fields.ts';
import {
  LIST_AGENT_CHARS_MAX,
  LIST_DURATION_MS_MAX,
  LIST_TEXT_CHARS_MAX,
  PAGE_SIZE_DEFAULT,
  PAGE_SIZE_MAX,
  PAGE_TOKEN_CHARS_MAX,
} from '../schema/limits.ts';
import { Type } from '../schema/type.ts';
import { paramsCheck } from '../schema/validate.ts';
import { TASK_STATES, type TaskState } from '../types.ts';
import { withJsonNames } from './decode.ts';

/** The value that a Protocol Buffers client writes for "any state". */
const ANY_STATE = 'TASK_STATE_UNSPECIFIED';

/** RFC 3339, as ProtoJSON writes a google.protobuf.Timestamp. */
const TIMESTAMP = '^(\\d{4}-\\d{2}-\\d{2}[Tt]\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?([Zz]|[+-]\\d{2}:\\d{2}))?$';

const nullable = { nullable: true } as const;

/** Params of ListTasks ([A2A 1.0] 3.1.4). An empty string means absent, as everywhere in ProtoJSON. */
export const listParams = Type.Object({
  contextId: optionalId,
  status: Type.Optional(
    Type.Unsafe<TaskState | null>({
      type: 'string',
      enum: ['', ANY_STATE, ...TASK_STATES, null],
      ...nullable,
      reason: 'must be the name of a task state',
    }),
  ),
  pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_SIZE_MAX, ...nullable })),
  pageToken: Type.Optional(Type.String({ maxLength: PAGE_TOKEN_CHARS_MAX, ...nullable })),
  historyLength,
  statusTimestampAfter: Type.Optional(
    Type.String({ pattern: TIMESTAMP, ...nullable, reason: 'must be a time in RFC 3339 format' }),
  ),
  includeArtifacts: flag,
  // Hopline's additions. Other servers ignore them.
  text: Type.Optional(Type.String({ maxLength: LIST_TEXT_CHARS_MAX, ...nullable })),
  agent: Type.Optional(Type.String({ maxLength: LIST_AGENT_CHARS_MAX, ...nullable })),
  minDurationMs: Type.Optional(Type.Integer({ minimum: 0, maximum: LIST_DURATION_MS_MAX, ...nullable })),
});

const check = paramsCheck(listParams);

/** Throws INVALID_PARAMS. */
export function decodeListTasks(params: unknown): ListTasksRequest {
  const named = withJsonNames(params);
  check(named);
  const {
    contextId,
    status,
    pageSize,
    pageToken,
    historyLength: history,
    statusTimestampAfter,
    includeArtifacts,
    text: wanted,
    agent,
    minDurationMs,
  } = named as JsonObject;
  const state = status === ANY_STATE ? undefined : (text(status) as TaskState | undefined);
  return {
    pageSize: (pageSize as number | null | undefined) ?? PAGE_SIZE_DEFAULT,
    includeArtifacts: includeArtifacts === true,
    ...present({
      contextId: text(contextId),
      text: text(wanted),
      agent: text(agent),
      // 0 means absent, as the default of any number in ProtoJSON.
      minDurationMs: (minDurationMs as number | null | undefined) || undefined,
      state,
      pageToken: text(pageToken),
      historyLength: (history as number | null | undefined) ?? undefined,
      statusSinceMs: millisecondsOf(text(statusTimestampAfter)),
    }),
  };
}

/** Whole milliseconds, rounded up: statuses have millisecond precision, and "greater or equal" must hold. */
function millisecondsOf(timestamp: string | undefined): number | undefined {
  if (timestamp === undefined) return undefined;
  const digits = /\.(\d+)/.exec(timestamp)?.[1] ?? '';
  const beyond = /[1-9]/.test(digits.slice(3)) ? 1 : 0;
  const milliseconds = Date.parse(timestamp.toUpperCase().replace(/\.\d+/, `.${digits.slice(0, 3).padEnd(3, '0')}`));
  if (Number.isNaN(milliseconds)) {
    throw invalidMember('statusTimestampAfter', 'must be a valid time');
  }
  return milliseconds + beyond;
}

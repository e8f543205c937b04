import {
  ID_CHARS_MAX,
  isDeeperThan,
  isInProgress,
  isObject,
  isTime,
  JSON_DEPTH_MAX,
  type JsonObject,
  TASK_STATES,
  type TaskState,
} from '@hopline/a2a';
import type { AgentInput, AgentRecord, ClientInput, InputRecord, RelayInput } from './inputs.ts';
import { isRole } from './subjects.ts';

/** Maximum levels of nesting of one input in JSON. Deeper ones could exhaust the stack of code that walks or encodes them. */
export const INPUT_DEPTH_MAX = JSON_DEPTH_MAX;

/**
 * Why a stored payload is not an input record. `wrong writer`: its subject is that of another service than the one that the record claims.
 */
export type RecordFault = 'not a record' | 'unknown version' | 'too deep' | 'wrong writer';

/**
 * Decodes a payload that was parsed as JSON. Checks every member that relays rely on, because any client of the log may append, and no
 * payload may stop a reader. An input of a kind that only a later version knows becomes an input of kind `unknown`, and a producer's input
 * that cannot be read becomes `malformed`. Unknown members are kept.
 */
export function decodeInputRecord(value: unknown): InputRecord | RecordFault {
  if (!isObject(value)) return 'not a record';
  if (value.v !== 1) return Number.isInteger(value.v) && Number(value.v) > 1 ? 'unknown version' : 'not a record';
  if (!isTime(value.at)) return 'not a record';
  const { v, at, from, inputs } = value as { v: 1; at: number; from: unknown; inputs: unknown };
  if (from === 'client' || from === 'relay') {
    if (isTooDeep(value.input)) return 'too deep';
    const input = decodeKind(value.input, from === 'client' ? CLIENT_INPUTS : RELAY_INPUTS);
    return input === undefined ? 'not a record' : ({ ...value, v, at, from, input } as InputRecord);
  }
  if (!Array.isArray(inputs) || !isProducer(from) || !isOrdinal(value.n)) return 'not a record';
  const isHeld = value.heldMs === undefined || isDuration(value.heldMs);
  return isHeld ? ({ ...value, inputs: inputs.map(decodeAgentInput) } as AgentRecord) : 'not a record';
}

/** Whether readers treat a producer's input as unreadable, once it is parsed as JSON. */
export function isMalformedInput(input: unknown): boolean {
  return decodeAgentInput(input).kind === 'malformed';
}

function decodeAgentInput(input: unknown): JsonObject {
  return (isTooDeep(input) ? undefined : decodeKind(input, AGENT_INPUTS)) ?? { kind: 'malformed' };
}

/** Text, the content of most records, needs no further check: once its members are checked, it is known to be flat. */
const isTooDeep = (input: unknown) => !(isObject(input) && input.kind === 'text') && isDeeperThan(input, INPUT_DEPTH_MAX);

type Members = { readonly [name: string]: (value: unknown) => boolean };

/** The input, if its members have the types that its kind requires. */
function decodeKind(input: unknown, kinds: Kinds): JsonObject | undefined {
  if (!isObject(input) || typeof input.kind !== 'string') return undefined;
  const isValid = kinds.get(input.kind);
  if (isValid === undefined) return { kind: 'unknown' };
  return isValid(input) ? input : undefined;
}

type Kinds = ReadonlyMap<string, (value: unknown) => boolean>;

const isText = (value: unknown): value is string => typeof value === 'string';
const isFlag = (value: unknown) => typeof value === 'boolean';
const isOrdinal = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 1;
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
const isDuration = (value: unknown) => Number.isFinite(value) && Number(value) >= 0;
const isPresent = (value: unknown) => value !== undefined;
const isAny = () => true;
const optional = (isValid: (value: unknown) => boolean) => (value: unknown) => value === undefined || isValid(value);
const arrayOf = (isValid: (value: unknown) => boolean) => (value: unknown) => Array.isArray(value) && value.every(isValid);
function objectOf(members: Members): (value: unknown) => boolean {
  // A constant, because building the list takes longer than the checks.
  const checks = Object.entries(members);
  return value => isObject(value) && checks.every(([name, isValid]) => isValid(value[name]));
}
function kindsOf(kinds: { readonly [kind: string]: Members }): Kinds {
  return new Map(Object.entries(kinds).map(([kind, members]) => [kind, objectOf(members)]));
}
const isTrue = (value: unknown) => value === true;

const isPart = objectOf({
  text: optional(isText),
  raw: optional(isText),
  url: optional(isText),
  filename: optional(isText),
  mediaType: optional(isText),
  metadata: optional(isObject),
});
/**
 * Bounded, because an id chosen by a client is in every record of its task. Counted in code points, like the JSON Schema that checks the
 * client's request.
 */
const isId = (value: unknown) => isText(value) && value.length <= 2 * ID_CHARS_MAX && [...value].length <= ID_CHARS_MAX;
const isMessage = objectOf({
  messageId: isText,
  role: isText,
  parts: arrayOf(isPart),
  metadata: optional(isObject),
  contextId: optional(isText),
});
const hasValidId = objectOf({ messageId: isId });
const isSource = objectOf({ mode: isText, node: optional(isText) });
const isArtifact = objectOf({
  id: optional(isText),
  transitory: optional(isTrue),
  separateClose: optional(isTrue),
  name: optional(isText),
  description: optional(isText),
  metadata: optional(isObject),
  extensions: optional(arrayOf(isText)),
});
const isProducer = objectOf({ id: isText, agent: isText, turn: isOrdinal, item: optional(isOrdinal), attempt: isOrdinal });
const isTaskState = (value: unknown): value is TaskState => TASK_STATES.some(state => state === value);
const isState = (value: unknown) => isTaskState(value) && value !== 'TASK_STATE_SUBMITTED';
const isEnd = (value: unknown) => isTaskState(value) && !isInProgress(value);

const isOutcome = objectOf({ value: isAny, error: optional(objectOf({ name: isText, message: isText })) });

/** Members that a status and the end of a call share. */
const OUTCOME: Members = {
  message: optional(isMessage),
  direct: optional(isTrue),
  metadata: optional(isObject),
  history: optional(arrayOf(isMessage)),
};

const CLIENT_INPUTS = kindsOf({
  message: {
    message: value => isMessage(value) && hasValidId(value),
    contextId: isId,
    role: value => isText(value) && isRole(value),
    profile: isText,
    metadata: optional(isObject),
    owner: optional(objectOf({ tenant: optional(isText), subject: optional(isText) })),
    earlierTasks: optional(arrayOf(isText)),
    continues: optional(isTrue),
    creates: optional(isTrue),
    ifGeneration: optional(isCount),
    ifTurn: optional(isOrdinal),
  },
  cancel: { metadata: optional(isObject) },
} satisfies { readonly [K in Exclude<ClientInput['kind'], 'unknown'>]: Members });

const RELAY_INPUTS = kindsOf({
  timeout: { request: value => Number.isInteger(value) },
  'auth-timeout': { request: value => Number.isInteger(value) },
  'copy-forward': { startStoredAt: isTime, idleSince: optional(isTime) },
  'work-gone': { turn: isOrdinal, call: optional(isText), lost: optional(value => value === 'item') },
  queued: { turn: isOrdinal, message: isMessage },
} satisfies { readonly [K in Exclude<RelayInput['kind'], 'unknown'>]: Members });

const AGENT_INPUTS = kindsOf({
  open: { lane: isText, artifact: isArtifact, source: optional(isSource) },
  text: {
    lane: isText,
    tokens: arrayOf(isText),
    dt: optional(arrayOf(value => Number.isFinite(value))),
    ids: optional(arrayOf(isText)),
  },
  close: { lane: isText },
  artifact: {
    lane: isText,
    artifact: isArtifact,
    parts: arrayOf(isPart),
    append: isFlag,
    last: isFlag,
    source: optional(isSource),
  },
  status: { state: isState, ...OUTCOME, resume: isAny, source: optional(isSource) },
  queued: { message: optional(isMessage) },
  call: {
    call: isText,
    agent: isText,
    statusPasses: optional(isTrue),
    presentation: optional(isObject),
    message: optional(isMessage),
    metadata: optional(isObject),
    resume: isAny,
    trace: optional(objectOf({ traceparent: optional(isText), tracestate: optional(isText) })),
  },
  ended: {
    call: isText,
    state: isEnd,
    ...OUTCOME,
    withheldText: optional(isText),
    reason: optional(isText),
    retryable: optional(isFlag),
    resume: isAny,
  },
  step: { step: isText, payload: isPresent },
  'remote-run': { run: isPresent },
  'agent-step': {
    step: isText,
    n: isOrdinal,
    phase: value => value === 'reached' || value === 'stored' || value === 'reused',
    outcome: optional(isOutcome),
    of: optional(isOrdinal),
  },
  // A task file holds the record as it was decoded.
  malformed: {},
} satisfies { readonly [K in Exclude<AgentInput['kind'], 'unknown'>]: Members });

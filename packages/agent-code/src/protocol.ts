import { isObject } from '@hopline/a2a';
import type { BegunStep, StepOutcome, Turn } from '@hopline/agent';
import type { EndedRequest } from '@hopline/chat-model';
import { type ActiveWork, ATTRIBUTE_CHARS_MAX, type RemoteSpan, SPAN_ATTRIBUTES_MAX } from '@hopline/telemetry';
import { isParsable, ProtocolFault } from './frames.ts';

/**
 * The messages between a sub-agent and the host of its code. packages/agent-code/README.md describes an exchange. The sub-agent checks
 * every member that the host sends; the host trusts the sub-agent.
 */

/** The code that a host loads: the entry of an agents file, without what only the sub-agent needs. */
export type Code =
  | { adapter: 'module'; path: string; export?: string }
  | {
      adapter: 'langgraph';
      module: string;
      export?: string;
      checkpointer?: string;
      description?: string;
      silenceMsMax?: number;
      totalMsMax?: number;
    };

/** A turn without its functions and its signal, which do not fit into JSON. */
export type TurnData = Omit<
  Turn,
  'signal' | 'log' | 'showError' | 'toolTrace' | 'remoteRunBegan' | 'steps' | 'textSoFar' | 'modelFetch' | 'modelRequestEnded'
>;

export type ToHost =
  /** `traced`: the sub-agent exports spans. */
  | { k: 'load'; code: Code; folder: string; traced: boolean }
  /** `work`: names for the spans of the code. */
  | { k: 'turn'; id: number; turn: TurnData; work?: ActiveWork }
  /** For the sub-agent the turn is over, and it waits only for the code to stop. */
  | { k: 'abort'; id: number; reason?: string }
  /** The sub-agent has consumed `bytes` bytes of the turn's events. */
  | { k: 'taken'; id: number; bytes: number }
  | { k: 'skills'; id: number }
  | { k: 'cancel'; id: number; run: unknown; trace: Turn['trace'] }
  /** The answer to `step-begin` and `step-end` of a turn. */
  | { k: 'step'; id: number; begun?: BegunStep; error?: Thrown }
  | { k: 'ping' }
  /** No turn runs: the host closes the agent and ends. */
  | { k: 'close' };

/** An error of the code. `text`: with stack and causes, for its author only. */
export type Thrown = { name: string; message: string; stack: string; text: string; misuse?: true; code?: string };

/** An ended span of the code. It belongs to the trace of its turn, whatever the host claims. */
export type CodeSpan = Omit<RemoteSpan, 'traceId' | 'attributes' | 'linkIds'> & {
  attributes: Readonly<Record<string, string | number | boolean>>;
};

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

export type FromHost =
  | { k: 'loaded'; name?: string; description: string; reportsWork: boolean; repeatsText: boolean; cancels: boolean }
  | { k: 'refused'; error: Thrown; cause?: Thrown }
  /** A string is a token of the answer. */
  | { k: 'events'; id: number; events: readonly unknown[] }
  | { k: 'over'; id: number; error?: Thrown }
  | { k: 'log'; id: number; level: (typeof LOG_LEVELS)[number]; line: string }
  | { k: 'shown'; id: number; text: string }
  | { k: 'run'; id: number; run: unknown }
  /** A turn has at most one of these two requests without an answer. */
  | { k: 'step-begin'; id: number; step: string }
  | { k: 'step-end'; id: number; outcome: StepOutcome }
  /** A request of the code to a model has ended. */
  | { k: 'model-request'; id: number; request: EndedRequest }
  | { k: 'answer'; id: number; value?: unknown; error?: Thrown }
  | { k: 'spans'; id: number; spans: readonly CodeSpan[] }
  | { k: 'skipped' }
  /** The code ended its process with an error that nothing caught. */
  | { k: 'crashed'; text: string }
  | { k: 'pong' };

/**
 * Bytes of events of one turn that may be on their way or wait for the log. The host stops reading the code at this bound, and sends at most one
 * frame above it.
 */
export const WINDOW_BYTES = 1024 * 1024;
/** Events of one frame. The host writes a frame after half as many. */
export const FRAME_EVENTS_MAX = 2_048;
/** Characters of a line of `turn.log`. */
export const LOG_LINE_CHARS_MAX = 1_024;
/** Characters of an error for the author. */
export const AUTHOR_TEXT_CHARS_MAX = 8 * 1024;
/** Characters of the description of an agent. */
export const HOST_DESCRIPTION_CHARS_MAX = 4_096;
/** Characters of a message that becomes the reason of a failed turn. */
const MESSAGE_CHARS_MAX = 1_024;

/** Characters of the name of a model. */
const MODEL_NAME_CHARS_MAX = 256;
/** Characters of the name of a step: STEP_NAME_UNITS_MAX of packages/task. */
const STEP_NAME_CHARS_MAX = 128;

/** Spans of one frame. */
export const SPANS_PER_FRAME_MAX = 128;
/** Characters of the name of a span, of its tracer, and of the keys of its attributes. */
export const SPAN_NAME_CHARS_MAX = 256;

/** Reads what a host sent. Throws ProtocolFault for anything that Hopline's own host would not send. */
export function readFromHost(document: Buffer): FromHost {
  if (!isParsable(document)) throw new ProtocolFault('a frame has too many values');
  let value: unknown;
  try {
    value = JSON.parse(document.toString('utf8'));
  } catch {
    throw new ProtocolFault('a frame is not JSON');
  }
  const read = isObject(value) ? READERS.get(value.k) : undefined;
  const frame = read?.(value as Members);
  if (frame === undefined) throw new ProtocolFault('a frame has an unknown kind or a member of a wrong type');
  return frame;
}

type Members = Readonly<Record<string, unknown>>;

const READERS: ReadonlyMap<unknown, (frame: Members) => FromHost | undefined> = new Map(
  Object.entries<(frame: Members) => FromHost | undefined>({
    loaded: ({ name, description, reportsWork, repeatsText, cancels }) => {
      const isNamed = name === undefined || isText(name, MESSAGE_CHARS_MAX);
      if (!isNamed || !isText(description, HOST_DESCRIPTION_CHARS_MAX)) return undefined;
      const traits = { reportsWork: reportsWork === true, repeatsText: repeatsText === true, cancels: cancels === true };
      return { k: 'loaded', ...(name !== undefined && { name }), description, ...traits };
    },
    refused: ({ error, cause }) => {
      const [sentence, reason] = [thrownOf(error), thrownOf(cause)];
      return sentence && { k: 'refused', error: sentence, ...(reason && { cause: reason }) };
    },
    events: ({ id, events }) =>
      isId(id) && Array.isArray(events) && events.length <= FRAME_EVENTS_MAX ? { k: 'events', id, events } : undefined,
    over: ({ id, error }) => (isId(id) ? withError({ k: 'over', id }, error) : undefined),
    log: ({ id, level, line }) => {
      const known = LOG_LEVELS.find(one => one === level);
      return isId(id) && known !== undefined && isText(line, LOG_LINE_CHARS_MAX)
        ? { k: 'log', id, level: known, line }
        : undefined;
    },
    shown: ({ id, text }) => (isId(id) && isText(text, AUTHOR_TEXT_CHARS_MAX) ? { k: 'shown', id, text } : undefined),
    run: ({ id, run }) => (isId(id) ? { k: 'run', id, run } : undefined),
    'step-begin': ({ id, step }) =>
      isId(id) && step !== '' && isText(step, STEP_NAME_CHARS_MAX) ? { k: 'step-begin', id, step } : undefined,
    'step-end': ({ id, outcome }) => (isId(id) && isOutcome(outcome) ? { k: 'step-end', id, outcome } : undefined),
    'model-request': ({ id, request }) => (isId(id) && isEndedRequest(request) ? { k: 'model-request', id, request } : undefined),
    answer: ({ id, value, error }) => (isId(id) ? withError({ k: 'answer', id, value }, error) : undefined),
    spans: ({ id, spans }) => {
      if (!isId(id) || !Array.isArray(spans) || spans.length > SPANS_PER_FRAME_MAX) return undefined;
      return spans.every(isCodeSpan) ? { k: 'spans', id, spans } : undefined;
    },
    skipped: () => ({ k: 'skipped' }),
    crashed: ({ text }) => (isText(text, AUTHOR_TEXT_CHARS_MAX) ? { k: 'crashed', text } : undefined),
    pong: () => ({ k: 'pong' }),
  }),
);

function withError<F extends FromHost>(frame: F, error: unknown): FromHost | undefined {
  if (error === undefined) return frame;
  const thrown = thrownOf(error);
  return thrown && ({ ...frame, error: thrown } as FromHost);
}

function thrownOf(value: unknown): Thrown | undefined {
  if (!isObject(value)) return undefined;
  const { name, message, stack, text, misuse, code } = value;
  if (!isText(name, 128) || !isText(message, MESSAGE_CHARS_MAX)) return undefined;
  if (!isText(stack, AUTHOR_TEXT_CHARS_MAX) || !isText(text, AUTHOR_TEXT_CHARS_MAX)) return undefined;
  return { name, message, stack, text, ...(misuse === true && { misuse }), ...(isText(code, 64) && { code }) };
}

function isOutcome(value: unknown): value is StepOutcome {
  if (!isObject(value)) return false;
  const { error } = value;
  return error === undefined || (isObject(error) && isText(error.name, 128) && isText(error.message, MESSAGE_CHARS_MAX));
}

function isEndedRequest(value: unknown): value is EndedRequest {
  if (!isObject(value)) return false;
  const { model, at, ms, failure, usage } = value;
  const isTimed = isUpTo(at, Number.MAX_SAFE_INTEGER) && typeof ms === 'number' && Number.isFinite(ms) && ms >= 0;
  if (!isText(model, MODEL_NAME_CHARS_MAX) || !isTimed || (failure !== undefined && !isText(failure, 64))) return false;
  return isObject(usage) && Object.values(usage).every(tokens => isUpTo(tokens, Number.MAX_SAFE_INTEGER));
}

const SPAN_ID = /^[0-9a-f]{16}$/;
/** Values of SpanKind and of SpanStatusCode. */
const SPAN_KIND_MAX = 4;
const STATUS_CODE_MAX = 2;

function isCodeSpan(value: unknown): value is CodeSpan {
  if (!isObject(value)) return false;
  const { spanId, parentSpanId, name, kind, startTime, endTime, attributes, status, scope } = value;
  const areIds = isSpanId(spanId) && (parentSpanId === undefined || isSpanId(parentSpanId));
  const areTexts = isText(name, SPAN_NAME_CHARS_MAX) && isText(scope, SPAN_NAME_CHARS_MAX);
  if (!areIds || !areTexts || !isUpTo(kind, SPAN_KIND_MAX) || !isTime(startTime) || !isTime(endTime)) return false;
  if (!isObject(status) || !isUpTo(status.code, STATUS_CODE_MAX)) return false;
  if (status.message !== undefined && !isText(status.message, ATTRIBUTE_CHARS_MAX)) return false;
  return isObject(attributes) && areAttributes(Object.entries(attributes));
}

function areAttributes(attributes: readonly [string, unknown][]): boolean {
  if (attributes.length > SPAN_ATTRIBUTES_MAX) return false;
  return attributes.every(([key, value]) => {
    const isPlain = typeof value === 'number' || typeof value === 'boolean' || isText(value, ATTRIBUTE_CHARS_MAX);
    return key.length <= SPAN_NAME_CHARS_MAX && isPlain;
  });
}

const isSpanId = (value: unknown) => typeof value === 'string' && SPAN_ID.test(value);
const isUpTo = (value: unknown, max: number) => Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= max;
/** Seconds and nanoseconds since 1970. */
const isTime = (value: unknown) =>
  Array.isArray(value) && value.length === 2 && isUpTo(value[0], 2 ** 40) && isUpTo(value[1], 999_999_999);
const isId = (value: unknown): value is number => Number.isSafeInteger(value);
const isText = (value: unknown, charsMax: number): value is string => typeof value === 'string' && value.length <= charsMax;

/** Cuts the texts of an error to what `readFromHost` accepts. */
export function boundedThrown(error: Thrown): Thrown {
  const { name, message, stack, text } = error;
  return {
    ...error,
    name: name.slice(0, 128),
    message: message.slice(0, MESSAGE_CHARS_MAX),
    stack: stack.slice(0, AUTHOR_TEXT_CHARS_MAX),
    text: text.slice(0, AUTHOR_TEXT_CHARS_MAX),
  };
}

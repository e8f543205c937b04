import { AsyncLocalStorage } from 'node:async_hooks';
import { type AgentSkill, isObject, type Message, type Metadata, textOf } from '@hopline/a2a';
import { ModelError } from '@hopline/chat-model/model-error';
import { AGENT_NAME_RULE, isAgentName } from '@hopline/events';
import { type Tracer, trace } from '@opentelemetry/api';
import type { Agent, AgentEvent, Approval, Turn } from './agent.ts';
import { answeredApproval } from './approval.ts';
import { modelFailed } from './event-constructors.ts';
import { GrowingText } from './growing-text.ts';
import { AgentMisuse, kindOf } from './misuse.ts';
import { faultOfParts } from './parts.ts';
import { pausedModelOf } from './paused-model.ts';
import { THIS_TURN, type TurnRequest } from './this-turn.ts';
import { NO_LOG, type TurnLog } from './turn-log.ts';
import { type UnstartedCall, unstartedCalls } from './unstarted-calls.ts';

/** A turn as an author's `run` receives it. */
export type AgentTurn = {
  readonly message: Message;
  /** All text parts of the message, in order, without separator (S1-6). */
  readonly text: string;
  /** Request-level metadata of the client. */
  readonly metadata: Metadata;
  /** Earlier messages of the context, oldest first. */
  readonly history: readonly Message[];
  /** The `resume` value of `needsInput` or `needsApproval` in the previous turn. */
  readonly resume: unknown;
  /** The call of `needsApproval` in the previous turn, with the decision. Its arguments are those that the question showed. */
  readonly approval: Approval | undefined;
  /** Aborts when the turn is over (cancelled, superseded, shutdown): pass it to every request. */
  readonly signal: AbortSignal;
  /** 1-based. The text of a later attempt replaces that of an earlier one. */
  readonly attempt: number;
  /** The turn's span is active in `run`: spans that start there are its children. */
  readonly tracer: Tracer;
  readonly log: TurnLog;
};

/** A skill; `id` defaults to the name in lower case with dashes, `description` to the name. */
export type SkillDefinition = {
  name: string;
  id?: string | undefined;
  description?: string | undefined;
  tags?: string[] | undefined;
  examples?: string[] | undefined;
};

/** Definition of an agent, the argument of `defineAgent`. */
export type AgentDefinition = {
  /** 1 to 32 of a-z, 0-9 and -. Clients address the agent by it (`metadata.agent`). */
  name: string;
  description: string;
  skills?: readonly (string | SkillDefinition)[] | undefined;
  /**
   * Set it for an agent that passes on the output of another server, which may repeat its text: as tokens, in an artifact, or in its last
   * message. A supervisor's answer then has the text once. Default false: text that is yielded twice is shown twice.
   */
  repeatsText?: boolean | undefined;
  /**
   * Yields strings (text of the answer, byte for byte) and events of the kit's constructors; `yield*` runs a `tool`, a `step` or a `model`.
   * Returning counts as `done`; throwing fails the turn. Every event must be yielded, even the one that ends the turn: `return yield
   * failed(…)`.
   */
  run(turn: AgentTurn): AsyncIterable<string | AgentEvent | TurnRequest, void, undefined>;
  /** Releases the agent's resources. Called once, after the last turn. */
  close?(): Promise<void> | void;
};

export interface DefinedAgent extends Agent {
  readonly name: string;
}

const SCOPE = 'hopline.agent';

const EVENT_TYPES: ReadonlySet<unknown> = new Set<AgentEvent['type']>([
  'text',
  'working',
  'text-end',
  'step',
  'snapshot',
  'tool',
  'usage',
  'progress',
  'artifact',
  'auth-required',
  'interrupted',
  'done',
  'failed',
]);

/** Makes an agent from a definition. Throws an AgentMisuse that names the wrong member. */
export function defineAgent(definition: AgentDefinition): DefinedAgent {
  if (typeof definition !== 'object' || definition === null) throw new AgentMisuse(`the definition is ${kindOf(definition)}`);
  const { name, description, skills = [], repeatsText = false, run, close } = definition;
  if (typeof name !== 'string' || !isAgentName(name)) throw new AgentMisuse(`name must be ${AGENT_NAME_RULE}`);
  if (typeof description !== 'string' || description === '')
    throw new AgentMisuse('description must be a string that is not empty');
  if (typeof run !== 'function') throw new AgentMisuse(`run is ${kindOf(run)}; it must be a generator: async *run(turn) { … }`);
  if (typeof repeatsText !== 'boolean') throw new AgentMisuse(`repeatsText is ${kindOf(repeatsText)}, not a boolean`);
  if (!Array.isArray(skills)) throw new AgentMisuse(`skills is ${kindOf(skills)}, not an array`);
  const fullSkills = skills.map((skill, index) => skillOf(skill, index));
  return {
    name,
    description,
    ...(repeatsText && { repeatsText }),
    skills: async () => fullSkills,
    run: turn => checkedEvents(definition, turn),
    close: async () => close?.call(definition),
  };
}

async function* checkedEvents(definition: AgentDefinition, turn: Turn): AsyncGenerator<AgentEvent> {
  const authorTurn = agentTurn(turn);
  const events: unknown = definition.run(authorTurn);
  if (typeof events !== 'object' || events === null || !(Symbol.asyncIterator in events))
    throw new AgentMisuse(`run returned ${kindOf(events)}; it must be a generator: async *run(turn) { … }`);
  const iterator = (events as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  let isOver = false;
  let hasYielded = false;
  let answer: unknown;
  // The text is kept from the first token on, because a model() may begin at any time and restores the text before it. The cost is not
  // measurable: 0.99 µs of CPU per token with and without it (a million tokens, six rounds each, 2026-11-29).
  let text = new GrowingText();
  const { approval } = authorTurn;
  const turnWithText: Turn = { ...turn, ...(approval && { approval }), textSoFar: () => text.text };
  const unstarted = new Map<object, UnstartedCall>();
  // Uses a snapshot, because `run` copies all stores: 0.4 µs of CPU per token, against 0.15 µs for the snapshot (a million tokens,
  // 2026-11-29).
  const inTurn = unstartedCalls.run(unstarted, () => AsyncLocalStorage.snapshot());
  const next = () => iterator.next(answer);
  try {
    for (;;) {
      isOver = true;
      const { done, value } = await inTurn(next);
      if (done === true) {
        checkReturned(value, hasYielded);
        checkStarted(unstarted);
        return;
      }
      [isOver, hasYielded] = [false, true];
      answer = value === THIS_TURN ? turnWithText : undefined;
      if (value === THIS_TURN) continue;
      const event = checkEvent(value);
      if (event.type === 'snapshot') text = new GrowingText(event.text);
      if (event.type === 'text' && event.stream === undefined) text.add(event.text);
      if (event.type === 'done' || event.type === 'interrupted') checkStarted(unstarted);
      yield event;
    }
  } catch (error) {
    if (!ModelError.is(error)) throw error;
    if (error.cause !== undefined) turn.showError?.(error.cause);
    yield modelFailed(error);
  } finally {
    // As with `for await`, a generator that has returned or thrown need not be ended.
    if (!isOver) await iterator.return?.();
  }
}

function agentTurn(turn: Turn): AgentTurn {
  const { message, metadata, history, signal, attempt, log = NO_LOG } = turn;
  const text = textOf(message.parts);
  const shown = { message, text, metadata, history, signal, attempt, tracer: trace.getTracer(SCOPE), log };
  // `model` itself handles the decision about one of its own calls.
  if (pausedModelOf(turn) !== undefined) return { ...shown, approval: undefined, resume: undefined };
  const { approval, resume } = answeredApproval(turn) ?? { approval: undefined, resume: turn.resume };
  return { ...shown, approval, resume };
}

function skillOf(skill: unknown, index: number): AgentSkill {
  const given = (typeof skill === 'string' ? { name: skill } : skill) as SkillDefinition | null;
  const name = given?.name;
  if (typeof name !== 'string' || name === '') throw new AgentMisuse(`skills[${index}] needs a name`);
  const {
    id = name.toLowerCase().replace(/[^a-z0-9]+/g, '-'),
    description = name,
    tags = [],
    examples,
  } = given as SkillDefinition;
  for (const [field, list] of Object.entries({ tags, examples: examples ?? [] })) {
    if (!Array.isArray(list) || list.some(entry => typeof entry !== 'string'))
      throw new AgentMisuse(`skills[${index}].${field} must be a list of strings`);
  }
  if (typeof id !== 'string' || typeof description !== 'string')
    throw new AgentMisuse(`skills[${index}]: id and description are strings`);
  return { id, name, description, tags, ...(examples && { examples }) };
}

/**
 * Throws AgentMisuse for a returned event, which would have no effect, and for a returned string if the run yielded nothing. Any other
 * value is allowed, because a run may end with a helper (`return yield* answer(turn)`).
 */
function checkReturned(value: unknown, hasYielded: boolean): void {
  if (typeof value === 'string' && value !== '' && !hasYielded)
    throw new AgentMisuse('run returned a string and yielded nothing; write yield before the string');
  if (isObject(value) && EVENT_TYPES.has(value.type))
    throw new AgentMisuse(
      'run returned an event, which has no effect; write yield before it: return yield needsInput(…), for example',
    );
}

/** Throws AgentMisuse for a call without `yield*`, because it has had no effect. */
function checkStarted(unstarted: ReadonlyMap<object, UnstartedCall>): void {
  const [first] = unstarted.values();
  if (first === undefined) return;
  const { kind, name } = first;
  throw new AgentMisuse(`${typeof name === 'string' ? `${kind} ${name}` : kind} has not run: write yield* before ${kind}(…)`);
}

/** A yielded value as an event; a string is text. Throws AgentMisuse for any other value that is not an event. */
export function checkEvent(yielded: unknown): AgentEvent {
  if (typeof yielded === 'string') return { type: 'text', text: yielded };
  if (typeof yielded === 'object' && yielded !== null && Symbol.asyncIterator in yielded)
    throw new AgentMisuse('run yielded a generator; write yield* before it, not yield');
  if (typeof yielded !== 'object' || yielded === null || !('type' in yielded) || !EVENT_TYPES.has(yielded.type)) {
    throw new AgentMisuse(
      `run yielded ${kindOf(yielded)}; yield a string, or an event made by notice, artifact, data, needsInput, needsApproval, done or failed`,
    );
  }
  const event = yielded as AgentEvent;
  if ((event.type === 'text' || event.type === 'snapshot') && typeof event.text !== 'string')
    throw new AgentMisuse(`run yielded text that is ${kindOf(event.text)}`);
  if (event.type === 'tool') checkTool(event);
  if (event.type === 'usage' && !isUsage(event.usage))
    throw new AgentMisuse('run yielded usage that is not an object of whole numbers, 0 or more');
  if (event.type === 'artifact') {
    const fault = faultOfParts(event.artifact?.parts);
    if (fault !== undefined) throw new AgentMisuse(`run yielded an artifact whose ${fault}; make it with artifact()`);
  }
  const hasMessage = event.type === 'progress' || event.type === 'auth-required' || event.type === 'interrupted';
  const message: unknown = 'message' in event ? event.message : undefined;
  if (!hasMessage && message === undefined) return event;
  if (!isObject(message))
    throw new AgentMisuse(`run yielded ${event.type} without a message; make it with notice(), needsInput() or needsApproval()`);
  const fault = faultOfParts(message.parts);
  if (fault !== undefined) throw new AgentMisuse(`run yielded ${event.type} with a message whose ${fault}`);
  return event;
}

function isUsage(usage: unknown): boolean {
  return isObject(usage) && Object.values(usage).every(tokens => Number.isSafeInteger(tokens) && Number(tokens) >= 0);
}

function checkTool({ phase, callId, tool }: Extract<AgentEvent, { type: 'tool' }>): void {
  if ((phase !== 'start' && phase !== 'end') || typeof callId !== 'string' || typeof tool !== 'string')
    throw new AgentMisuse('run yielded a tool event without phase ("start" or "end"), callId and tool');
}

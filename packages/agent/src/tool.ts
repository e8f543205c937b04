import { randomUUID } from 'node:crypto';
import type { AgentEvent, Turn } from './agent.ts';
import type { AsJson } from './as-json.ts';
import { type Delegated, delegated } from './delegated.ts';
import { isJson, nonEmpty } from './event-constructors.ts';
import { AgentMisuse, kindOf } from './misuse.ts';
import { type RetryOptions, retried } from './retried.ts';
import { stepIn } from './step.ts';
import { type TurnRequest, thisTurn } from './this-turn.ts';

/**
 * An error whose message clients may see. The message of any other error is shown only to the agent's author.
 * @public
 */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

/** Compared by name, because a stored error has no class. */
export function isToolError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ToolError';
}

/** The argument of the function of a tool. */
export type ToolContext = {
  /** Aborts when the turn is over: pass it to every request. */
  signal: AbortSignal;
  /** W3C trace context for the tool's own requests. */
  trace: Turn['trace'];
};

/** Options of a tool: its retries, and whether its result is stored as a step. */
export type ToolOptions = RetryOptions & {
  /** Stores the result as a step of the same name: the next attempt gets it instead of running the tool again. Default false. */
  stored?: boolean | undefined;
};

/**
 * Runs a tool: `const out = yield* tool('weather', { city }, () => …)`. Clients see the call, its arguments and its result, which the log
 * keeps, cut above a bound. Called with `turn.approval.arguments`, it is the approved call. Throws what `run` throws; clients see that the
 * call failed, and the message of a ToolError.
 * @public
 */
export function tool<T>(
  name: string,
  args: Readonly<Record<string, unknown>>,
  run: (context: ToolContext) => T | Promise<T>,
  options: ToolOptions & { stored: true },
): Delegated<AsJson<T>>;
export function tool<T>(
  name: string,
  args: Readonly<Record<string, unknown>>,
  run: (context: ToolContext) => T | Promise<T>,
  options?: ToolOptions,
): Delegated<T>;
export function tool<T>(
  name: string,
  args: Readonly<Record<string, unknown>>,
  run: (context: ToolContext) => T | Promise<T>,
  options: ToolOptions = {},
): Delegated<T> {
  return delegated({ kind: 'tool', name }, runTool(name, args, run, options));
}

async function* runTool<T>(
  name: string,
  args: Readonly<Record<string, unknown>>,
  run: (context: ToolContext) => T | Promise<T>,
  options: ToolOptions,
): AsyncGenerator<AgentEvent | TurnRequest, T, unknown> {
  nonEmpty('tool: name', name);
  if (typeof run !== 'function') throw new AgentMisuse(`tool ${name}: its third argument is ${kindOf(run)}, not a function`);
  return yield* toolIn(yield* thisTurn(), name, args, run, options);
}

/** `tool` for a given turn, instead of the turn that is running. */
export async function* toolIn<T>(
  turn: Turn,
  name: string,
  args: Readonly<Record<string, unknown>>,
  run: (context: ToolContext) => T | Promise<T>,
  options: ToolOptions & { callId?: string | undefined },
): AsyncGenerator<AgentEvent, T, unknown> {
  if (typeof args !== 'object' || args === null || Array.isArray(args) || !isJson(args))
    throw new AgentMisuse(`tool ${name}: its arguments are ${kindOf(args)}; they must be an object that can be written as JSON`);
  const { callId = callIdIn(turn, name, args) } = options;
  const call = { type: 'tool', callId, tool: name } as const;
  yield { ...call, phase: 'start', arguments: args };
  const once = () => run({ signal: turn.signal, trace: turn.toolTrace?.(call.callId) ?? turn.trace });
  const tried = () => retried(name, once, options, turn.signal);
  try {
    const result = yield* options.stored === true ? stepIn(turn, name, tried) : tried();
    yield { ...call, phase: 'end', ...(isJson(result) && { result }) };
    return result;
  } catch (error) {
    const shown = isToolError(error) && { result: error.message };
    if (!turn.signal.aborted) yield { ...call, phase: 'end', failed: true, ...shown };
    throw error;
  }
}

/** A call that clients have seen waiting for its approval keeps its id when it runs with the approved arguments. */
function callIdIn({ approval }: Turn, tool: string, args: unknown): string {
  const isApproved = approval?.approved === true && approval.tool === tool && approval.arguments === args;
  return isApproved ? approval.callId : randomUUID();
}

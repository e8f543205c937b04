import { ModelError, type ModelErrorData } from '@hopline/chat-model/model-error';
import type { StepOutcome } from '@hopline/events';
import { STEP_NAME_UNITS_MAX } from '@hopline/task';
import type { AgentEvent, Turn } from './agent.ts';
import type { AsJson } from './as-json.ts';
import { type Delegated, delegated } from './delegated.ts';
import { nonEmpty } from './event-constructors.ts';
import { AgentMisuse, kindOf } from './misuse.ts';
import { type RetryOptions, retried } from './retried.ts';
import { checkOutcome } from './step-sequence.ts';
import { type TurnRequest, thisTurn } from './this-turn.ts';

/** The argument of the function of a step. */
export type StepContext = {
  /** Aborts when the turn is over: pass it to every request. */
  signal: AbortSignal;
  /**
   * Idempotency key: the same in every attempt of the turn, and different for every other step. Send it with a request whose effect must
   * not happen twice, because a process may die after the effect and before its result is stored.
   */
  key: string;
};

/**
 * Runs `run` and stores its result in the log: `const id = yield* step('charge', ({ key }) => …)`. If the process dies later, the next
 * attempt gets the stored result instead of running the step again. An error that the step throws is stored as well, and thrown again.
 * There is one exception: if the turn then fails as retryable and its call is repeated, the steps that failed last run again.
 *
 * The result is a JSON value of at most STEP_OUTCOME_BYTES_MAX bytes; every attempt gets it as it is after a round trip through JSON. A
 * turn must make the same steps in the same order in each attempt, so base its decisions only on the message, the history, and results of
 * steps.
 * @public
 */
export function step<T>(
  name: string,
  run: (context: StepContext) => T | Promise<T>,
  options: RetryOptions = {},
): Delegated<AsJson<T>> {
  return delegated({ kind: 'step', name }, runStep(name, run, options)) as Delegated<AsJson<T>>;
}

async function* runStep<T>(
  name: string,
  run: (context: StepContext) => T | Promise<T>,
  options: RetryOptions,
): AsyncGenerator<AgentEvent | TurnRequest, T, unknown> {
  nonEmpty('step: name', name);
  if (typeof run !== 'function') throw new AgentMisuse(`step ${name}: its second argument is ${kindOf(run)}, not a function`);
  const turn = yield* thisTurn();
  return yield* stepIn(turn, name, key => retried(name, () => run({ signal: turn.signal, key }), options, turn.signal));
}

/** The step of a turn that is known. `run` is not called if an earlier attempt has stored its result. */
export async function* stepIn<E, T>(
  { steps, signal }: Pick<Turn, 'steps' | 'signal'>,
  name: string,
  run: (key: string) => AsyncGenerator<E, T, unknown>,
): AsyncGenerator<E, T, unknown> {
  if (name.length > STEP_NAME_UNITS_MAX) throw new AgentMisuse(`step: name has more than ${STEP_NAME_UNITS_MAX} characters`);
  if (steps === undefined) throw new AgentMisuse(`step ${name}: this agent runs where steps cannot be stored`);
  const begun = await steps.begin(name);
  if (begun.outcome !== undefined) return resultOf<T>(begun.outcome);
  let outcome: StepOutcome;
  try {
    outcome = storable(name, yield* run(begun.key));
  } catch (error) {
    if (!signal.aborted && !(error instanceof AgentMisuse)) await steps.end({ error: errorOf(error) });
    throw error;
  }
  await steps.end(outcome);
  return resultOf<T>(outcome);
}

/** The value after a round trip through JSON, so that the first attempt gets the same value as later ones. */
function storable(name: string, value: unknown): StepOutcome {
  if (value === undefined) return {};
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch {
    // A cycle, or a BigInt.
  }
  if (json === undefined) throw new AgentMisuse(`step ${name}: its result is ${kindOf(value)}, which cannot be written as JSON`);
  const outcome = { value: JSON.parse(json) as unknown };
  checkOutcome(name, outcome);
  return outcome;
}

function resultOf<T>({ value, error }: StepOutcome): T {
  if (error === undefined) return value as T;
  if (error.data !== undefined) throw ModelError.from(error.data as ModelErrorData);
  throw Object.defineProperty(new Error(error.message), 'name', { value: error.name, configurable: true });
}

const ERROR_CHARS_MAX = 1_024;

function errorOf(error: unknown): NonNullable<StepOutcome['error']> {
  const { name, message } = error instanceof Error ? error : new Error(typeof error);
  const text = { name: String(name).slice(0, 128), message: String(message).slice(0, ERROR_CHARS_MAX) };
  return { ...text, ...(ModelError.is(error) && { data: error.toJSON() }) };
}

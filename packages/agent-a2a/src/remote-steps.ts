import { setTimeout as delay } from 'node:timers/promises';
import { isObject, type JsonObject, type Metadata, type RemoteResponse } from '@hopline/a2a';
import { AgentMisuse, type BegunStep, type StepOutcome, type TurnSteps } from '@hopline/agent';
import { AGENT_UNREACHABLE, AgentFault } from './agent-fault.ts';

/** URI of the extension for stored steps, which STEPS-EXTENSION.md describes, and its method. */
export const STEPS_EXTENSION_URI = 'https://hopline.dev/extensions/steps/v1';
export const ANSWER_STEP = 'AnswerStep';

/** Tries to give the agent one answer while it cannot be reached, and the pause between them in milliseconds. */
const ANSWER_TRIES_MAX = 5;
const ANSWER_RETRY_MS = 500;
/** Characters of the name of a step: STEP_NAME_UNITS_MAX of packages/task. */
const STEP_NAME_UNITS_MAX = 128;
/** Characters of an error of a step, as the kits cut them. */
const ERROR_NAME_UNITS_MAX = 128;
const ERROR_MESSAGE_UNITS_MAX = 1_024;

/**
 * `steps` are the names of the steps that the agent's run has reached. The agent waits at the last one. `outcome` is set if it has run that
 * step.
 */
type StepRequest = { id: string; steps: readonly string[]; outcome?: StepOutcome };

type RemoteStepsOptions = {
  /** Absent: the agent gets an error for its first step. */
  steps: TurnSteps | undefined;
  /** Sends an answer to the agent. */
  send: (answer: JsonObject) => Promise<RemoteResponse>;
  /** The turn cannot continue. */
  onFault: (fault: AgentFault) => void;
};

/** The steps of a remote run, stored for it in the log of this turn. The agent waits for each answer before it goes on. */
export class RemoteSteps {
  readonly #options: RemoteStepsOptions;
  /** Id of the newest request. A poll returns it again. */
  #newest: string | undefined;
  #isServing = false;
  /** The number of steps of the run that this attempt has begun, and the state in which the last one began. */
  #begun: { count: number; last?: BegunStep } = { count: 0 };

  constructor(options: RemoteStepsOptions) {
    this.#options = options;
  }

  /** Reads the metadata of a status or task, which may contain a request. */
  read(metadata: Metadata | undefined): void {
    const asked = metadata?.[STEPS_EXTENSION_URI];
    // A turn that has ended leaves null in its task.
    if (asked === undefined || asked === null) return;
    const request = requestOf(asked);
    if (request !== undefined && request.id === this.#newest) return;
    if (request === undefined || this.#isServing) {
      const what = request === undefined ? 'sent a malformed request for a step' : 'asked for two steps at once';
      this.#options.onFault(protocolFault(what));
      return;
    }
    this.#newest = request.id;
    this.#isServing = true;
    this.#serve(request).catch(error => {
      // Without a fault the attempt is over, and ends by itself.
      if (error instanceof AgentFault) this.#options.onFault(error);
    });
  }

  async #serve(request: StepRequest): Promise<void> {
    const answer = await this.#answerTo(request).finally(() => {
      this.#isServing = false;
    });
    await this.#send(request.id, answer);
  }

  async #answerTo(request: StepRequest): Promise<JsonObject> {
    try {
      return await this.#store(request);
    } catch (error) {
      if (error instanceof AgentMisuse) return { error: error.message };
      throw error;
    }
  }

  /** An earlier attempt may have begun the run and have stored steps. This attempt first reaches each of those. */
  async #store({ steps: names, outcome }: StepRequest): Promise<JsonObject> {
    const { steps } = this.#options;
    if (steps === undefined) throw new AgentMisuse('this agent runs where steps cannot be stored');
    let { count, last } = this.#begun;
    for (const name of names.slice(count)) {
      if (last !== undefined && last.outcome === undefined) throw protocolFault('began a step before the previous one ended');
      last = await steps.begin(name);
      count += 1;
      this.#begun = { count, last };
    }
    if (last === undefined) throw protocolFault('asked for no step');
    if (outcome === undefined) return { ...last };
    if (last.outcome === undefined) await steps.end(outcome);
    this.#begun = { count, last: { ...last, outcome } };
    return {};
  }

  /** A later request of the agent proves that it has the answer. */
  async #send(id: string, answer: JsonObject): Promise<void> {
    for (let tries = 1; id === this.#newest; tries += 1) {
      try {
        const response = await this.#options.send({ id, ...answer });
        if (!('error' in response)) return;
        throw new AgentFault(`the agent refused the answer to a step with error ${response.error.code}`, true, {
          word: STEP_WORD,
        });
      } catch (error) {
        if (id !== this.#newest) return;
        if (!(error instanceof AgentFault) || error.message !== AGENT_UNREACHABLE) throw error;
        if (tries === ANSWER_TRIES_MAX)
          throw new AgentFault('the agent did not accept the answer to a step', true, { cause: error, word: STEP_WORD });
        await delay(ANSWER_RETRY_MS);
      }
    }
  }
}

const STEP_WORD = 'step_protocol';

function protocolFault(what: string): AgentFault {
  return new AgentFault(`the agent ${what}`, false, { word: STEP_WORD });
}

function requestOf(asked: unknown): StepRequest | undefined {
  if (!isObject(asked)) return undefined;
  const { id, steps, outcome } = asked;
  if (!isText(id, 64) || !Array.isArray(steps) || !steps.every(name => isText(name, STEP_NAME_UNITS_MAX))) return undefined;
  if (outcome === undefined) return { id, steps };
  const stored = outcomeOf(outcome);
  return stored && { id, steps, outcome: stored };
}

/** JSON as text, so that numbers stay as the agent wrote them. */
function outcomeOf(json: unknown): StepOutcome | undefined {
  if (typeof json !== 'string') return undefined;
  let outcome: unknown;
  try {
    outcome = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (!isObject(outcome)) return undefined;
  const { value, error } = outcome;
  if (error === undefined) return value === undefined ? {} : { value };
  if (!isObject(error)) return undefined;
  const { name, message } = error;
  const isError = isText(name, ERROR_NAME_UNITS_MAX) && typeof message === 'string' && message.length <= ERROR_MESSAGE_UNITS_MAX;
  return isError ? { error: { name, message } } : undefined;
}

function isText(value: unknown, unitsMax: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= unitsMax;
}

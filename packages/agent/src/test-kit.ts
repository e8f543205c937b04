import { randomUUID } from 'node:crypto';
import { Fold, type FoldedArtifact, type Message } from '@hopline/a2a';
import { type AgentInput, isVisible, type Producer, type StepOutcome, type TaskAggregate, type Work } from '@hopline/events';
import { InputUnreadable, readableBytes } from '@hopline/log';
import { artifactIdOf, type Command, decide, evolve, ROOT_AGENT } from '@hopline/task';
import { type ClientView, ViewFold } from '@hopline/task-view';
import { AbortableEvents } from './abortable-events.ts';
import type { Agent, AgentEvent, BegunStep, Turn, TurnSteps } from './agent.ts';
import type { InputSink } from './lane-writer.ts';
import { BoundExceeded } from './limits.ts';
import { type ModelPrompt, type ModelReply, PlayedModels } from './played-models.ts';
import { NO_PRIOR_ATTEMPTS } from './prior-attempts.ts';
import { isEnd, UNREADABLE_EVENT } from './pump-events.ts';
import { StepSequence, type StoredStep } from './step-sequence.ts';
import { COMPLETED, endOf, failedEnd, failureOf, type TurnEnd } from './turn-end.ts';
import { TurnInputs } from './turn-inputs.ts';
import { turnLog } from './turn-log.ts';

export type { ModelPrompt, ModelReply } from './played-models.ts';

/** Members of a turn other than its message. */
export type PlayOptions = Partial<Pick<Turn, 'attempt' | 'history' | 'metadata' | 'resume' | 'signal'>> & {
  /** Steps that an earlier attempt has stored: those entries of its `steps` that were not lost with its process. */
  steps?: readonly PlayedStep[];
  /** The answers of the models of the turn, in the order of the requests. Absent: the requests go to their servers. */
  model?: readonly ModelReply[];
};

/** A step of a played turn whose outcome is stored. `isReused`: the outcome comes from an earlier attempt, and the step has not run. */
export type PlayedStep = { step: string; n: number; outcome: StepOutcome; isReused: boolean };

/** A tool call as clients see it. `result`: for a failed call, its error. */
export type PlayedTool = { tool: string; arguments?: unknown; result?: unknown; outcome: 'open' | 'completed' | 'failed' };

/** Result of `playTurn`. */
export type PlayedTurn = {
  /** The answer as a client shows it. */
  readonly text: string;
  /** The agent's artifacts apart from the answer and tool calls, in the order in which they were opened. */
  readonly artifacts: readonly FoldedArtifact[];
  /** Progress lines, in order. */
  readonly notices: readonly string[];
  readonly end: TurnEnd;
  /** Tool calls, in order of their starts. */
  readonly tools: readonly PlayedTool[];
  /** Stored steps, in order. If the turn failed as retryable and its call is repeated, the steps that then run again are left out. */
  readonly steps: readonly PlayedStep[];
  /** The requests to the models of the turn, in order. Empty without `model` in the options. */
  readonly prompts: readonly ModelPrompt[];
  /** Every event as the agent sent it. */
  readonly events: readonly AgentEvent[];
  /** Lines that the turn logged. */
  readonly log: readonly string[];
};

const TASK = 'task-1';
const CONTEXT = 'context-1';
/** JSON bytes of one event that is not text: half the largest record of a cluster with the default settings. */
const EVENT_BYTES_MAX = 512 * 1024;

/**
 * Plays one turn without a cluster: the agent's events go through the same rules as in a cluster, and the result is what a client folds
 * from them. If the agent throws, the turn fails and `cause` is the error. If `signal` aborts before the turn has ended, the task is
 * canceled. Rejects if `model` has fewer answers than the turn makes requests.
 */
export async function playTurn(
  agent: Agent,
  input: string | Message,
  options: PlayOptions = {},
): Promise<PlayedTurn & { cause?: unknown }> {
  const message: Message =
    typeof input === 'string' ? { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: input }] } : input;
  const { attempt = 1, history = [], metadata = {}, resume, signal = new AbortController().signal } = options;
  const log: string[] = [];
  const steps = new PlayedSteps(options.steps ?? [], attempt);
  const models = options.model && new PlayedModels(options.model);
  const turn: Turn = {
    taskId: TASK,
    contextId: CONTEXT,
    message,
    metadata,
    attempt,
    history,
    trace: {},
    signal,
    ...(resume !== undefined && { resume }),
    steps,
    ...(models && { modelFetch: models.fetch }),
    log: turnLog(collecting(log), 'agent'),
  };
  const work: Work = { v: 1, taskId: TASK, contextId: CONTEXT, turn: 1, profile: 'transparent', message };
  const sink = new Collected();
  const inputs = new TurnInputs({
    work,
    agent: 'agent',
    attempt,
    sink,
    eventBytesMax: EVENT_BYTES_MAX,
    inputBytesMax: Number.POSITIVE_INFINITY,
    prior: NO_PRIOR_ATTEMPTS,
    forwardText: true,
  });
  inputs.begin();
  const events: AgentEvent[] = [];
  const { end, cause } = await pumpEvents(agent, turn, event => {
    events.push(event);
    if (!isEnd(event)) inputs.take(event);
  });
  inputs.end(end);
  models?.check();
  const folds = foldInputs(work, attempt, sink.inputs);
  const shown = shownOf(folds);
  const played = {
    ...shown,
    notices: noticesOf(events),
    tools: toolsOf(events),
    steps: steps.keptBy(end),
    prompts: models?.prompts ?? [],
  };
  return { ...played, end: endOfTask(end, folds), events, log, ...(cause !== undefined && { cause }) };
}

async function pumpEvents(
  agent: Agent,
  turn: Turn,
  take: (event: AgentEvent) => void,
): Promise<{ end: TurnEnd; cause?: unknown }> {
  try {
    for await (const event of new AbortableEvents(() => agent.run(turn), turn.signal)) {
      take(event);
      if (isEnd(event)) return { end: endOf(event) };
    }
    return { end: turn.signal.aborted ? { state: 'TASK_STATE_CANCELED' } : COMPLETED };
  } catch (cause) {
    if (cause instanceof InputUnreadable) return { end: failedEnd(UNREADABLE_EVENT, false), cause };
    return { end: cause instanceof BoundExceeded ? failedEnd(cause.message, false) : failureOf(cause), cause };
  }
}

/** Steps in memory, with the same rules as those in the log. */
class PlayedSteps implements TurnSteps {
  readonly played: PlayedStep[] = [];
  readonly #sequence = new StepSequence();
  readonly #earlier: readonly StoredStep[];

  constructor(earlier: readonly PlayedStep[], attempt: number) {
    this.#earlier = earlier.map(({ step, n, outcome }) => ({ step, n, outcome, attempt: attempt - 1 }));
  }

  /** The steps that the next attempt gets. */
  keptBy({ state, retryable }: TurnEnd): readonly PlayedStep[] {
    const isRepeated = state === 'TASK_STATE_FAILED' && retryable === true;
    return isRepeated ? this.played.slice(0, this.played.length - this.#sequence.lastFailed.length) : this.played;
  }

  async begin(step: string): Promise<BegunStep> {
    const place = this.#sequence.reach(step);
    const key = artifactIdOf(TASK, `step/${place.n}/${step}`);
    const stored = this.#sequence.outcomeOf(place, this.#earlier);
    if (stored === undefined) return { key };
    this.played.push({ ...place, outcome: stored.outcome, isReused: true });
    return { key, outcome: stored.outcome };
  }

  async end(outcome: StepOutcome): Promise<void> {
    this.played.push({ ...this.#sequence.end(outcome), outcome, isReused: false });
  }
}

/** Inputs of one turn, with tokens as they arrived. */
class Collected implements InputSink {
  readonly inputs: AgentInput[] = [];

  add(input: AgentInput): void {
    if (input.kind !== 'text') readableBytes(input);
    this.inputs.push(input);
  }

  addHeld(input: AgentInput): void {
    this.add(input);
  }

  token(lane: string, text: string): void {
    this.inputs.push({ kind: 'text', lane, tokens: [text] });
  }
}

function foldInputs(work: Work, attempt: number, inputs: readonly AgentInput[]): Folds {
  const from: Producer = { id: ROOT_AGENT, agent: 'agent', turn: work.turn, attempt };
  const { taskId, contextId, profile, message } = work;
  const begin = { kind: 'message', message, contextId, role: 'agent.agent', profile } as const;
  const commands: Command[] = [{ kind: 'client', taskId, input: begin }];
  for (const [index, input] of inputs.entries()) {
    if (input.kind !== 'text') commands.push({ kind: 'agent', from, input });
    else {
      const n = index + 1;
      const chunk = { firstSeq: n, lastSeq: n, count: 1, n, reason: 'test', heldMs: 0, firstAt: 0, lastAt: 0 };
      commands.push({ kind: 'run', from, lane: input.lane, text: input.tokens.join(''), last: false, n, chunk });
    }
  }
  const fold = new Fold();
  // The names of its artifacts are the agent's own, so none of them is part of the answer.
  const viewFold = new ViewFold({ answerNames: [] });
  let aggregate: TaskAggregate | undefined;
  for (const command of commands) {
    for (const fact of decide(aggregate, command, 0).facts) {
      aggregate = evolve(aggregate, fact);
      if (!isVisible(fact)) continue;
      fold.add(fact.event);
      viewFold.add({ event: fact.event });
    }
  }
  return { fold, view: viewFold.view };
}

/** The end of the turn, unless a rule of the task has already made it fail. */
function endOfTask(end: TurnEnd, { fold: { task } }: Folds): TurnEnd {
  const { state } = task?.status ?? {};
  const { reason } = task?.metadata ?? {};
  return state === 'TASK_STATE_FAILED' && end.state !== state ? failedEnd(String(reason), false) : end;
}

/** The view decides what belongs to the answer. The reference fold has each artifact as it was sent, with its metadata. */
type Folds = { fold: Fold; view: ClientView };

function shownOf({ fold, view: { answer, texts, files } }: Folds): Pick<PlayedTurn, 'text' | 'artifacts'> {
  const inTexts = new Set(texts.map(({ id }) => id));
  const beside = files.filter(({ id }) => !inTexts.has(id));
  return { text: answer, artifacts: beside.flatMap(({ id }) => fold.artifacts.get(id) ?? []) };
}

function noticesOf(events: readonly AgentEvent[]): string[] {
  return events.flatMap(event => (event.type === 'progress' ? [event.message.parts.map(part => part.text ?? '').join('')] : []));
}

function toolsOf(events: readonly AgentEvent[]): PlayedTool[] {
  const tools = new Map<string, PlayedTool>();
  for (const event of events) {
    if (event.type !== 'tool') continue;
    const { callId, tool, failed, arguments: args, result } = event;
    const known = tools.get(callId) ?? { tool, ...(args !== undefined && { arguments: args }), outcome: 'open' as const };
    const ended = event.phase === 'end' && { outcome: failed === true ? ('failed' as const) : ('completed' as const) };
    tools.set(callId, { ...known, ...ended, ...(result !== undefined && { result }) });
  }
  return [...tools.values()];
}

function collecting(lines: string[]): Parameters<typeof turnLog>[0] {
  const method = (...args: unknown[]) => void lines.push(String(args.at(-1)));
  const logger = { trace: method, debug: method, info: method, warn: method, error: method, fatal: method, child: () => logger };
  return logger;
}

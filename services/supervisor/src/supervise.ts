import { isInterrupted, isTerminal } from '@hopline/a2a';
import { readContextHistory } from '@hopline/context-history';
import { createInputWriter, followTask, type Job, type LiveAgents, type Log, Requeued, type StoredFacts } from '@hopline/log';
import { SUPERVISOR } from '@hopline/task';
import { ATTR, type Hop, type HopMetrics, type Logger, SPAN, startHop } from '@hopline/telemetry';
import { atLeastOneAgent } from './at-least-one-agent.ts';
import { CaipeTurn } from './caipe-turn.ts';
import { type ModelSettings, ModelTurn } from './model-turn.ts';
import type { Planner } from './planner.ts';
import { TransparentTurn } from './transparent-turn.ts';
import type { TurnContext, TurnRunner } from './turn-runner.ts';
import { TurnView } from './turn-view.ts';

export type SuperviseDeps = {
  log: Log;
  planner: Planner;
  /** Absent: turns are conducted by the planner. */
  model: ModelSettings | undefined;
  agents: LiveAgents;
  displayName: string;
  metrics: HopMetrics;
  logger: Logger;
  signal: AbortSignal;
};

/**
 * Conducts one turn of a task until it is over: follows the task's facts and says what is due. Resolves when the task ended, waits for input, or went on to a
 * later turn; rejects when it has to be handed back: with Requeued at a shutdown, else as the log does.
 */
export async function supervise(deps: SuperviseDeps, job: Job): Promise<void> {
  const { log, metrics } = deps;
  const { work, attempt } = job;
  const hop = startHop(SPAN.processWork, {
    kind: 'consumer',
    parent: job.trace,
    attributes: {
      [ATTR.a2aTask]: work.taskId,
      [ATTR.role]: SUPERVISOR,
      [ATTR.attempt]: attempt,
      [ATTR.genAiConversation]: work.contextId,
    },
  });
  if (attempt > 1) metrics.redeliveries.add(1);
  const stop = new AbortController();
  const signal = AbortSignal.any([deps.signal, stop.signal]);
  let failed: { error: unknown } | undefined;
  const fail = (error: unknown) => {
    failed ??= { error };
    stop.abort();
  };
  try {
    const newest = await log.facts.last(work.taskId);
    if (newest === undefined) throw new Error('work for a task that is not in the log');
    const records = await followTask(log.facts, newest, signal);
    const view = new TurnView();
    const context = turnContext(deps, job, { view, newest, hop, signal, fail });
    let turn: TurnRunner | undefined;
    for await (const record of records) {
      view.apply(record);
      if (isOver(view, work.turn)) return;
      if (record.seq < newest.seq) continue;
      turn ??= turnRunner(deps.model, context);
      if (job.exhausted) giveUp(context);
      else await turn.advance();
      // A writer that failed rejects here: the job is handed back instead of waiting for facts that never come.
      await context.writer.flush();
    }
    throw failed === undefined ? new Error('supervision was interrupted') : failed.error;
  } catch (error) {
    // What breaks off because the process ends is no fault of the task: it counts as no attempt.
    if (deps.signal.aborted && failed === undefined) {
      hop.set({ [ATTR.outcome]: Requeued.name });
      throw new Requeued('shutdown');
    }
    hop.fail('interrupted');
    throw error;
  } finally {
    stop.abort();
    hop.end();
  }
}

function isOver(view: TurnView, turn: number): boolean {
  const aggregate = view.aggregate;
  if (aggregate === undefined || aggregate.turn < turn) return false;
  return aggregate.turn > turn || isTerminal(aggregate.state) || (isInterrupted(aggregate.state) && view.asksClient);
}

/** The last delivery of work that nobody could finish: the task ends with a reason instead of hanging. */
function giveUp({ writer }: TurnContext): void {
  writer.add({
    kind: 'status',
    state: 'TASK_STATE_FAILED',
    metadata: { reason: 'the supervisor gave up after several attempts', retryable: true },
  });
}

/** By profile; a model conducts where one is configured, unless the client has chosen the agent itself, or the turn was begun without a model. */
function turnRunner(model: ModelSettings | undefined, context: TurnContext): TurnRunner {
  const { work, view } = context;
  if (work.profile !== 'caipe') return new TransparentTurn(context);
  const isChosen = (work.message.metadata?.agent ?? work.metadata?.agent) !== undefined;
  const isBegun = view.calls.length > 0 || view.waiting.length > 0;
  const byModel = isBegun ? view.steps.size > 0 : !isChosen;
  return model !== undefined && byModel ? new ModelTurn(context, model) : new CaipeTurn(context);
}

type Around = { view: TurnView; newest: StoredFacts; hop: Hop; signal: AbortSignal; fail: (error: unknown) => void };

function turnContext(deps: SuperviseDeps, job: Job, { view, newest, hop, signal, fail }: Around): TurnContext {
  const { log, planner, agents, displayName } = deps;
  const { work, attempt } = job;
  const { taskId, contextId, turn, profile, owner, metadata } = work;
  const asked = { ...(owner && { owner }), ...(metadata && { metadata }) };
  const producer = { id: SUPERVISOR, agent: SUPERVISOR, turn, attempt };
  return {
    work,
    attempt,
    view,
    writer: createInputWriter(log.inputs, { taskId, producer, trace: hop.carrier() }),
    planner,
    agents: () => atLeastOneAgent(agents, signal),
    history: async beforeTurn => (await readContextHistory(log, newest, beforeTurn)).messages,
    isLive: agent => agents.list().some(({ name }) => name === agent),
    delegate: ({ agent, message = work.message, ...call }) => {
      const item = { v: 1 as const, taskId, contextId, turn, profile, call, message, ...asked };
      return log.work.request(`agent.${agent}`, item, { id: `${taskId}:${call.id}`, trace: hop.carrier() });
    },
    fail,
    displayName,
    trace: () => hop.carrier(),
    signal,
  };
}

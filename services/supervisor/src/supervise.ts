import { isInterrupted, isTerminal, stateWord } from '@hopline/a2a';
import { readContextHistory } from '@hopline/context-history';
import { type Fact, hasWritten, isSameItem, type StatusInput } from '@hopline/events';
import {
  followTask,
  InputUnreadable,
  InputWriter,
  type Job,
  type LiveAgents,
  type Log,
  NO_LONGER_NEEDED,
  newestOfTurn,
  type QueueWaits,
  Requeued,
  requireNewest,
  type StoredFacts,
  Superseded,
  type TextPace,
} from '@hopline/log';
import type { Profiles } from '@hopline/profiles';
import { SUPERVISOR } from '@hopline/task';
import {
  ATTR,
  correlationOf,
  errorWord,
  type Hop,
  type HopMetrics,
  inWork,
  type Logger,
  ownerAttributes,
  redeliveryCause,
  SPAN,
  startWorkHop,
  takenWork,
  withModelCalls,
} from '@hopline/telemetry';
import { delegatedRequest, namesAgent } from './agent-path.ts';
import { AGENT_WAIT_MS, atLeastOneAgent } from './at-least-one-agent.ts';
import { CallItems } from './call-items.ts';
import { CallWaits } from './call-waits.ts';
import { ComposeHop } from './compose-hop.ts';
import { ForwardingTurn } from './forwarding-turn.ts';
import { abandonGoneAgents } from './gone-agents.ts';
import { LOST_INPUTS_CHECK_MS, showLostInputs } from './lost-inputs.ts';
import { abandonLostItems, LOST_ITEMS_CHECK_MS } from './lost-items.ts';
import { type ModelSettings, ModelTurn } from './model-turn.ts';
import { PlannedTurn } from './planned-turn.ts';
import type { Planner } from './planner.ts';
import type { ConductingContext, TurnContext, TurnRunner } from './turn-runner.ts';
import { TurnView } from './turn-view.ts';

/** Intervals of the checks for lost inputs and for lost work items, in milliseconds. */
const CHECK_TIMES = { lostInputsMs: LOST_INPUTS_CHECK_MS, lostItemsMs: LOST_ITEMS_CHECK_MS };

export type SuperviseDeps = {
  log: Log;
  planner: Planner;
  profiles: Profiles;
  /** Absent: the planner chooses the agents. */
  model: ModelSettings | undefined;
  agents: LiveAgents;
  /** The calls of all turns whose agents have not begun. */
  waits: QueueWaits;
  displayName: string;
  /** A call is abandoned when its agent has been out of the registry for this many milliseconds. */
  agentGoneMs: number;
  /**
   * An agent is chosen until its last heartbeat is this many milliseconds old. If the supervisor has just started, a task waits this long
   * for a first agent. Default AGENT_WAIT_MS.
   */
  agentWaitMs?: number;
  /** How long text is held before it is stored. Absent: it is stored at once, and the relay holds it. */
  pace?: TextPace;
  /** Tests use shorter ones. */
  times?: Partial<typeof CHECK_TIMES>;
  metrics: HopMetrics;
  logger: Logger;
  signal: AbortSignal;
};

/**
 * Runs one turn of a task until it is over, and measures it. Resolves when the task has ended, waits for input, or has proceeded to a later
 * turn. Rejects when the work must be requeued: with Requeued at a shutdown, with Superseded when a newer attempt has written, else with
 * the error of the log.
 */
export async function supervise(deps: SuperviseDeps, job: Job): Promise<void> {
  const { metrics } = deps;
  const takenAt = Date.now();
  const startedMs = performance.now();
  const hop = startHopOf(job, takenAt);
  measureTaken(metrics, job, takenAt);
  const stop = new AbortController();
  const signal = AbortSignal.any([deps.signal, stop.signal]);
  let failed: { error: unknown } | undefined;
  const fail = (error: unknown) => {
    failed ??= { error };
    stop.abort();
  };
  try {
    const { taskId, contextId, owner } = job.work;
    const { tenant } = metrics.parties.of(owner);
    const work = { agent: SUPERVISOR, taskId, contextId, owner, tenant, span: hop.segmentCarrier() };
    const writer = inputWriter(deps, job, { hop, takenAt });
    const turn = { hop, takenAt, signal, fail, writer };
    await inWork(work, () =>
      withModelCalls(
        call => writer.modelEnded(call),
        () => followTurn(deps, job, turn),
      ),
    );
  } catch (thrown) {
    // An interruption by the shutdown is not the task's fault and does not count as an attempt.
    if (deps.signal.aborted && failed === undefined) {
      hop.set({ [ATTR.outcome]: 'requeued' });
      metrics.requeues.add(1, { agent: SUPERVISOR, reason: 'shutdown' });
      throw new Requeued('shutdown');
    }
    const error = failed === undefined ? thrown : failed.error;
    if (error instanceof Superseded) {
      hop.set({ [ATTR.outcome]: 'superseded' });
      metrics.requeues.add(1, { agent: SUPERVISOR, reason: 'superseded' });
      throw error;
    }
    metrics.requeues.add(1, { agent: SUPERVISOR, reason: 'fault' });
    hop.fail(errorWord(error));
    throw error;
  } finally {
    stop.abort(NO_LONGER_NEEDED);
    metrics.activeTasks.add(-1, { agent: SUPERVISOR });
    metrics.turnDuration.recordMs(performance.now() - startedMs, { agent: SUPERVISOR }, job.trace);
    hop.end();
  }
}

/** `fail` ends the turn with an error by aborting `signal`. */
type RunningTurn = { hop: Hop; takenAt: number; signal: AbortSignal; fail: (error: unknown) => void; writer: InputWriter };

/** Follows the task's facts and appends what is due. Resolves when the turn is over; rejects if it is interrupted before that. */
async function followTurn(deps: SuperviseDeps, job: Job, { hop, takenAt, signal, fail, writer }: RunningTurn): Promise<void> {
  const { log } = deps;
  const { work } = job;
  const newest = await newestOfTurn(log.facts, job, signal);
  const records = await followTask(log.facts, newest, signal);
  const profile = deps.profiles.get(work.profile);
  const view = new TurnView(profile?.turn === 'conduct' ? profile.answer.name : undefined);
  const { lostInputsMs: checkMs } = { ...CHECK_TIMES, ...deps.times };
  const producer = { id: SUPERVISOR, item: job.item, attempt: job.attempt };
  const { isTakenOver } = job;
  const watched = { log, taskId: work.taskId, view, writer, producer, signal, checkMs, ...(isTakenOver && { isTakenOver }) };
  showLostInputs(watched).catch(error => signal.aborted || fail(error));
  const failTurn = (error: unknown) => {
    try {
      failUnreadable(writer, error);
    } catch (other) {
      fail(other);
    }
  };
  const isLive = (agent: string) => deps.agents.isLive(agent);
  const waits = new CallWaits({ waits: deps.waits, job, view, writer, profile, isLive, fail: failTurn });
  const items = new CallItems({ ...deps, job, view, writer, waits, hop, takenAt });
  signal.addEventListener('abort', () => waits.stop(), { once: true });
  const composing = new ComposeHop(deps.metrics, job.trace);
  const context = profile && turnContext(deps, job, { profile, view, writer, items, newest, hop, signal, fail: failTurn });
  let turn: TurnRunner | undefined;
  for await (const record of records) {
    view.apply(record);
    if (waits.open.size > 0) waits.settle();
    const continues = continuesArtifacts(record.record.facts);
    if (!continues) {
      hop.set({ [ATTR.a2aState]: stateWord(record.record.aggregate.state) });
      composing.apply(record.record.facts);
    }
    if (isOver(view, job)) {
      composing.end(record.record.aggregate);
      return;
    }
    if (record.seq < newest.seq) continue;
    requireNewest(record.record.aggregate, producer);
    if (turn === undefined && hasWritten(record.record.aggregate, producer)) throw new Superseded();
    if (job.exhausted) writer.add(taskFailure('the supervisor failed several times'));
    else if (context === undefined) writer.add(taskFailure(`the supervisor has no profile "${work.profile}"`));
    else if (turn === undefined || !continues) {
      turn ??= startTurn(deps, context, items);
      await items.queueCallsWithoutContent();
      await turn.advance().catch(error => failUnreadable(writer, error));
    }
    // If the writer has failed, this rejects, so that the job is requeued instead of waiting for facts that never come.
    await writer.flush();
  }
  throw new Error('supervision was interrupted');
}

function startHopOf({ work, item, attempt, requeues, trace }: Job, takenAt: number): Hop {
  const { taskId, contextId, turn, queuedAt } = work;
  const delivery = { taskId, role: SUPERVISOR, item, attempt, requeues, queuedAt, takenAt, trace };
  return startWorkHop(SPAN.processWork, 'consumer', delivery, {
    [ATTR.role]: SUPERVISOR,
    [ATTR.turn]: turn,
    [ATTR.genAiConversation]: contextId,
    [ATTR.correlation]: correlationOf(work.metadata),
    ...ownerAttributes(work.owner),
  });
}

function measureTaken(metrics: HopMetrics, job: Job, takenAt: number): void {
  const { queuedAt } = job.work;
  const reason = redeliveryCause(job);
  metrics.activeTasks.add(1, { agent: SUPERVISOR });
  if (reason !== undefined) metrics.redeliveries.add(1, { agent: SUPERVISOR, reason });
  else if (queuedAt !== undefined)
    metrics.hopDuration.recordMs(takenAt - queuedAt, { hop: 'work_queue', agent: SUPERVISOR }, job.trace);
  if (job.exhausted) metrics.deadLetters.add(1, { agent: SUPERVISOR, reason: 'attempts_exhausted' });
}

function isOver(view: TurnView, { work: { turn }, item }: Job): boolean {
  const aggregate = view.aggregate;
  if (aggregate === undefined || aggregate.turn < turn) return false;
  const producer = aggregate.producers[SUPERVISOR];
  // Another stored item of this turn has written first, so the relay rejects the inputs of this one.
  if (aggregate.turn === turn && producer !== undefined && !isSameItem(producer, { item })) return true;
  return aggregate.turn > turn || isTerminal(aggregate.state) || (isInterrupted(aggregate.state) && view.waitsForClient);
}

/** Most records only continue an agent's artifacts. The turn does not depend on them until the call ends. */
function continuesArtifacts(facts: readonly Fact[]): boolean {
  return facts.length > 0 && facts.every(fact => fact.kind === 'artifact.updated' && fact.producer !== SUPERVISOR);
}

/** The task ends with a reason instead of hanging. */
function taskFailure(reason: string, retryable = true): StatusInput {
  return { kind: 'status', state: 'TASK_STATE_FAILED', metadata: { reason, retryable } };
}

/**
 * Makes the task fail because of an input that the log does not accept, because every attempt would make the same input. Throws any other
 * error.
 */
function failUnreadable(writer: InputWriter, error: unknown): void {
  if (!(error instanceof InputUnreadable)) throw error;
  writer.add(taskFailure(error.message, false));
}

function startTurn(
  { log, logger, model, agentGoneMs, times }: SuperviseDeps,
  context: TurnContext,
  items: CallItems,
): TurnRunner {
  const { work, signal, fail } = context;
  const { lostItemsMs: checkMs } = { ...CHECK_TIMES, ...times };
  abandonGoneAgents({ ...context, log, logger, agentGoneMs }).catch(error => signal.aborted || fail(error));
  abandonLostItems({ ...context, log, taskId: work.taskId, items, checkMs }).catch(error => signal.aborted || fail(error));
  return turnRunner(model, context);
}

/** A model conducts the turn if one is configured, unless the client has chosen the agent or the turn began without a model. */
function turnRunner(model: ModelSettings | undefined, context: TurnContext): TurnRunner {
  const { work, view } = context;
  if (!isConducting(context)) return new ForwardingTurn(context);
  const isBegun = view.calls.length > 0 || view.waiting.length > 0;
  const byModel = isBegun ? view.steps.size > 0 : !namesAgent(work);
  return model !== undefined && byModel ? new ModelTurn(context, model) : new PlannedTurn(context);
}

function isConducting(context: TurnContext): context is ConductingContext {
  return context.profile.turn === 'conduct';
}

function inputWriter(
  { log, pace }: SuperviseDeps,
  job: Job,
  { hop, takenAt }: Pick<RunningTurn, 'hop' | 'takenAt'>,
): InputWriter {
  const { work, item, attempt, requeues } = job;
  const producer = { id: SUPERVISOR, agent: SUPERVISOR, turn: work.turn, item, attempt };
  const taken = takenWork({ attempt, requeues, queuedAt: work.queuedAt, takenAt });
  const options = { taskId: work.taskId, producer, trace: hop.carrier(), taken };
  return new InputWriter(log.inputs, { ...options, ...(pace && { pace }) });
}

type TurnParts = Pick<TurnContext, 'profile' | 'view' | 'writer' | 'signal' | 'fail'> & {
  items: CallItems;
  newest: StoredFacts;
  hop: Hop;
};

function turnContext(
  deps: SuperviseDeps,
  job: Job,
  { profile, view, writer, items, newest, hop, signal, fail }: TurnParts,
): TurnContext {
  const { log, planner, agents, displayName, agentWaitMs = AGENT_WAIT_MS } = deps;
  const { work, attempt } = job;
  return {
    work,
    profile,
    attempt,
    view,
    writer,
    planner,
    agents: () => atLeastOneAgent(agents, { waitMs: agentWaitMs }, signal),
    history: async beforeTurn => (await readContextHistory(log, newest, beforeTurn)).messages,
    isLive: agent => agents.isLive(agent),
    delegate: call => {
      items.begin({ ...delegatedRequest(work), ...call, trace: hop.carrier() });
      items.queueCallsWithoutContent().catch(error => signal.aborted || fail(error));
    },
    fail,
    displayName,
    trace: () => hop.carrier(),
    signal,
  };
}

import { isInterrupted } from '@hopline/a2a';
import type { ContextHistory } from '@hopline/context-history';
import { FORK_KEY } from '@hopline/events';
import { InputWriter, type Job, type Log, Requeued, Superseded, type TextPace } from '@hopline/log';
import { ROOT_AGENT } from '@hopline/task';
import { type Hop, type HopMetrics, takenWork, toCallee, withModelCalls } from '@hopline/telemetry';
import type { Turn } from './agent.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { cancelRemoteRuns } from './cancel-remote-runs.ts';
import { runsToCancel } from './continued-runs.ts';
import { TURN_WAITING_BYTES_MAX } from './limits.ts';
import type { PriorAttempts } from './prior-attempts.ts';
import { type PumpDeps, pumpEvents, toInvalidEventFailure } from './pump-events.ts';
import { requireShownEnd } from './shown-end.ts';
import type { SilentTurns } from './silent-turns.ts';
import { StoredSteps } from './stored-steps.ts';
import type { Over } from './task-watch.ts';
import { failedEnd, type TurnEnd, type TurnOutcome } from './turn-end.ts';
import { TurnInputs } from './turn-inputs.ts';
import { turnLog } from './turn-log.ts';
import { TurnMetrics } from './turn-metrics.ts';

/** Objects that the attempts of all turns share. */
export type AttemptDeps = PumpDeps & {
  log: Log;
  /** Aborts when the process stops: the turn is requeued, and a new attempt replaces its text. */
  signal: AbortSignal;
  metrics?: Pick<HopMetrics, 'hopDuration' | 'parties'>;
  /** The running turns of the agent. */
  silent?: SilentTurns;
  /** How often a call that failed as retryable is repeated: 0 to RETRIES_MAX, 0 by default. */
  retries?: number;
  /** False: a supervisor's client does not see the agent's text (C-5). Default true. */
  forwardText?: boolean;
  /** See ServeAgentOptions. */
  pace?: TextPace | undefined;
  /** See ServeAgentOptions. */
  endShownMsMax?: number | undefined;
};

type AttemptContext = {
  hop: Hop;
  /** Epoch milliseconds at which this process took the work item. */
  takenAt: number;
  history: ContextHistory;
  waitsForCredentials: boolean;
  prior: PriorAttempts;
  /** Resolves when the task no longer needs this turn. */
  watching: Promise<Over | undefined>;
};

/** Cause of a failure that the agent reports without one. */
export const AGENT_FAILED = 'agent_failed';

/** Share of a record that one event may take: every record also holds the task's aggregate. */
const EVENT_SHARE = 0.5;
/** Share of a record that one input may take: the end of a call has a message, withheld text and a resume value. */
const INPUT_SHARE = 0.75;

/**
 * Runs the agent once for a work item. Resolves with the end of the turn, or with the reason why the task no longer needs the turn. Rejects
 * like runTurn.
 */
export async function runAttempt(deps: AttemptDeps, job: Job, context: AttemptContext): Promise<TurnOutcome> {
  // Needed even if the turn is only settled: its watch may fail in the meantime, and an unhandled rejection would end the process.
  const ended = endOfTask(context.watching);
  const writer = inputWriter(deps, job, context);
  const inputs = turnInputs(deps, job, context, writer);
  // The runs that this attempt and earlier ones have begun on a server. The agent knows which of them have ended.
  const cancelRuns = async () => {
    const runs = await runsToCancel(deps.log, deps.agent, job, [...context.prior.remoteRuns, ...inputs.remoteRuns]);
    await cancelRemoteRuns(deps, job, { runs, trace: context.hop.carrier() });
  };
  const settled = async (end: TurnEnd) => {
    const outcome = await settle(deps, { inputs, writer }, end);
    // Cancels the runs of a failed turn, because no attempt continues them. The item is not done before that, so that another process
    // cancels them if this one dies.
    if (outcome.state !== 'TASK_STATE_COMPLETED' && !isInterrupted(outcome.state)) await cancelRuns();
    return outcome;
  };
  if (job.exhausted) return await settled(failedEnd('attempts exhausted', true, 'attempts_exhausted'));
  const lost = new AbortController();
  const signal = AbortSignal.any([deps.signal, ended.signal, lost.signal]);
  const steps = new StoredSteps({
    log: deps.log,
    job,
    writer,
    signal,
    add: input => inputs.agentStep(input),
    onLost: error => lost.abort(error),
  });
  const { hop, takenAt } = context;
  const measured = { hop, takenAt, agent: deps.name, metrics: deps.metrics, isFirstAttempt: job.attempt === 1 };
  const metrics = new TurnMetrics({ ...measured, onToolEnd: call => writer.toolEnded(call) });
  const leaveSilent = deps.silent?.add(metrics);
  const turn = {
    ...turnOf(deps, job, context, signal),
    toolTrace: (callId: string) => metrics.toolTrace(callId),
    remoteRunBegan: (run: unknown) => inputs.remoteRunBegan(run),
    steps,
  };
  const pumping = new AbortController();
  const onWait = () => {
    const waiting = requireShownWait(deps, job, writer, AbortSignal.any([signal, pumping.signal]));
    waiting.catch(error => pumping.signal.aborted || inputs.waitsFor === undefined || lost.abort(error));
  };
  const pumped = () => pumpEvents(deps, turn, { inputs, writer, hop, metrics, onWait });
  const end = await withModelCalls(call => writer.modelEnded(call), pumped).finally(() => {
    metrics.end();
    leaveSilent?.();
    steps.close();
    pumping.abort();
  });
  const over = ended.reason();
  if (over === 'superseded') throw new Superseded();
  if (over === 'lost') throw new AttemptFailed('the log was lost', 'log_lost');
  if (over !== undefined) {
    // The next turn continues the run that waits for credentials.
    const isContinued = over === 'later turn' && inputs.waitsFor !== undefined;
    if (over !== 'other item' && !isContinued) await cancelRuns();
    return { unneeded: over };
  }
  if (lost.signal.aborted && !deps.signal.aborted) throw lost.signal.reason;
  // Credentials may arrive after this process has ended, so the turn ends here and the next one continues it.
  if (deps.signal.aborted && inputs.waitsFor !== undefined) return await settled(inputs.waitsFor);
  if (deps.signal.aborted) throw new Requeued('shutdown');
  // The next attempt cancels the runs that this one has begun, because their end is the end of this attempt, not of the call.
  if (end.state !== 'TASK_STATE_COMPLETED' && (await isTakenOver(job))) throw new Superseded();
  if (isRetried(deps, job, end)) {
    await steps.openLastFailed();
    throw new AttemptFailed('the agent failed with a retryable error', end.cause ?? AGENT_FAILED);
  }
  return await settled(end);
}

/**
 * Rejects if no relay shows the newest input, a request for credentials, within the time limit for an end. If the request was removed
 * before a relay read it, no client can answer it, and the waiting agent writes nothing more by which a relay could notice the gap.
 */
async function requireShownWait(
  { log, endShownMsMax }: AttemptDeps,
  job: Job,
  writer: InputWriter,
  signal: AbortSignal,
): Promise<void> {
  const lastN = writer.nextN - 1;
  await writer.flush();
  const failure = () => new AttemptFailed('no relay has shown the request for credentials', 'wait_not_shown');
  await requireShownEnd(log, job, { lastN, signal, waitMs: endShownMsMax, failure });
}

/** If the log does not answer, the relay decides: it rejects this attempt's end if the next attempt has written. */
async function isTakenOver(job: Job): Promise<boolean> {
  return (await job.isTakenOver?.().catch(() => false)) ?? false;
}

function inputWriter({ log, name: agent, pace }: AttemptDeps, job: Job, { hop, takenAt }: AttemptContext): InputWriter {
  const { work, item, attempt, requeues } = job;
  const producer = { id: work.call?.id ?? ROOT_AGENT, agent, turn: work.turn, item, attempt };
  const taken = takenWork({ attempt, requeues, queuedAt: work.queuedAt, takenAt });
  const options = { taskId: work.taskId, producer, trace: hop.carrier(), taken, waitingBytesMax: TURN_WAITING_BYTES_MAX };
  return new InputWriter(log.inputs, { ...options, ...(pace && { pace }) });
}

function turnInputs(deps: AttemptDeps, { work, attempt }: Job, context: AttemptContext, sink: InputWriter): TurnInputs {
  const { log, name: agent, forwardText = true } = deps;
  const { reportsWork = false, repeatsText = false } = deps.agent;
  const { prior, waitsForCredentials } = context;
  const eventBytesMax = Math.floor(log.recordBytesMax * EVENT_SHARE);
  const inputBytesMax = Math.floor(log.recordBytesMax * INPUT_SHARE);
  const limits = { eventBytesMax, inputBytesMax };
  const traits = { reportsWork, repeatsText, forwardText };
  return new TurnInputs({ work, agent, attempt, sink, ...limits, prior, waitsForCredentials, ...traits });
}

/** A signal that aborts when the task no longer needs the turn, or when the task can no longer be watched (`lost`). */
function endOfTask(watching: AttemptContext['watching']): { signal: AbortSignal; reason: () => Over | 'lost' | undefined } {
  const ended = new AbortController();
  let reason: Over | 'lost' | undefined;
  const end = (why: Over | 'lost') => {
    reason ??= why;
    ended.abort(why);
  };
  watching.then(
    why => why !== undefined && end(why),
    () => end('lost'),
  );
  return { signal: ended.signal, reason: () => reason };
}

/**
 * A supervisor's call that failed as retryable gets a new attempt, which replaces this one's text (S4-40, C-5). A client that addresses the
 * agent directly sees the failure and may try again itself.
 */
function isRetried({ retries = 0 }: AttemptDeps, { work, attempt, requeues }: Job, end: TurnEnd): boolean {
  const failures = attempt - requeues;
  return end.state === 'TASK_STATE_FAILED' && end.retryable === true && work.call !== undefined && failures <= retries;
}

/** Writes the end of the turn, or a failure if the end does not fit into a record. */
async function settle(
  deps: AttemptDeps,
  { inputs, writer }: { inputs: TurnInputs; writer: InputWriter },
  end: TurnEnd,
): Promise<TurnEnd & { lastN: number }> {
  let outcome = end;
  try {
    inputs.end(end);
  } catch (error) {
    outcome = await toInvalidEventFailure(deps, error, writer);
    inputs.end(outcome);
  }
  await writer.flush();
  return { ...outcome, lastN: writer.nextN - 1 };
}

function turnOf(
  { name, logger, showError }: AttemptDeps,
  { work, attempt }: Job,
  { hop, history, prior }: AttemptContext,
  signal: AbortSignal,
): Turn {
  const { taskId, contextId, message, owner } = work;
  // Not passed on, because a remote cluster would look for the origin of the fork among its own tasks.
  const { [FORK_KEY]: _fork, ...metadata } = work.metadata ?? {};
  const resume = work.call?.resume ?? history.resumes.get(name);
  const request = { taskId, contextId, message, metadata, ...(owner && { owner }), ...(resume !== undefined && { resume }) };
  return {
    ...request,
    history: history.messages,
    attempt,
    ...(attempt > 1 && { shownText: prior.shownText, remoteRuns: prior.remoteRuns }),
    trace: toCallee(hop.carrier(), hop.segmentCarrier()),
    signal,
    log: turnLog(logger, name),
    ...(showError && { showError }),
  };
}

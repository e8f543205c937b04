import { type AgentSkill, stateWord } from '@hopline/a2a';
import {
  type AgentRegistration,
  backoffMs,
  type Job,
  type Log,
  Requeued,
  Superseded,
  sleepUnlessAborted,
  type TextPace,
} from '@hopline/log';
import { flushLog, type HopMetrics, inTrace, LINE, type Logger, redeliveryCause, taskLogger } from '@hopline/telemetry';
import { type Agent, TASK_ENDED } from './agent.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { FailedTurns } from './failed-turns.ts';
import { RETRIES_DEFAULT } from './limits.ts';
import { patientLog } from './patient-facts.ts';
import { registerAgent } from './register-agent.ts';
import { isExpected, runTurn } from './run-turn.ts';
import { requireShownEnd } from './shown-end.ts';
import { SilentTurns } from './silent-turns.ts';
import type { TurnOutcome, UnneededTurn } from './turn-end.ts';

/** How long running turns may take to end when the agent stops serving, in milliseconds. After that they are requeued. */
const DRAIN_MS = 10_000;

/** Wait before the log is checked again. */
const CHECK_MS_BASE = 100;
const CHECK_MS_MAX = 2_000;

/** Dependencies of `serveAgent`. */
export type ServeAgentOptions = {
  log: Log;
  /** Name of the agent: its role is `agent.<name>`. */
  name: string;
  agent: Agent;
  /** Address of the agent's own A2A endpoint, for the registry. */
  url: string;
  skills?: readonly AgentSkill[];
  /** Whether it receives messages that fit no skill. Default: false. */
  isDefault?: boolean;
  /** Concurrent turns. */
  slots: number;
  /** When it aborts, the agent takes no new work, lets running turns end within `drainMs`, and leaves the registry. */
  signal: AbortSignal;
  logger: Logger;
  metrics: HopMetrics;
  drainMs?: number;
  /** How often a call that failed as retryable is repeated: 0 to RETRIES_MAX, RETRIES_DEFAULT by default. */
  retries?: number;
  /** False: a supervisor's client does not see the agent's text (C-5). Default true. */
  forwardText?: boolean;
  /** How long text is held before it is stored. Absent: it is stored at once, and the relay holds it. */
  pace?: TextPace;
  /** Receives errors that the agent throws, for the terminal of its author, because they may contain content. */
  showError?: ((error: unknown) => void) | undefined;
  heartbeatMs?: number;
  /** How long the log may take to show the end of a turn, or a request for credentials, in milliseconds; default END_SHOWN_MS_MAX. */
  endShownMsMax?: number;
  /** Called after each heartbeat with the current entry. */
  onRegistered?: (entry: AgentRegistration) => void;
  /** Called after each request for the agent's skills, with the reason if it failed. */
  onSkills?: (fault: unknown) => void;
};

type ServingAgent = ServeAgentOptions & { failed: FailedTurns; silent: SilentTurns };

/** Registers the agent and runs its work until `signal` aborts and its turns are settled. Does not close the agent. */
export async function serveAgent(options: ServeAgentOptions): Promise<void> {
  const {
    log,
    name,
    agent,
    url,
    skills = [],
    isDefault = false,
    slots,
    signal,
    logger,
    heartbeatMs,
    onRegistered,
    onSkills,
  } = options;
  const release = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onStop = () => {
    timer = setTimeout(() => release.abort(), options.drainMs ?? DRAIN_MS);
  };
  if (signal.aborted) onStop();
  else signal.addEventListener('abort', onStop, { once: true });
  const entry = {
    name,
    agent,
    url,
    skills,
    isDefault,
    ...(heartbeatMs !== undefined && { heartbeatMs }),
    ...(onRegistered && { onRegistered }),
    ...(onSkills && { onSkills }),
  };
  await untilReadable(log, signal);
  const failed = new FailedTurns();
  const registered = registerAgent({ log, ...entry, logger, signal, failing: () => failed.failing() });
  const silent = new SilentTurns();
  options.metrics.turnSilence.observe(() => [[silent.longestMs / 1_000, { agent: name }]]);
  const patient = { ...options, log: patientLog(log, release.signal), failed, silent };
  await log.work.take(`agent.${name}`, { slots, signal, gate: agent.gate }, job => runJob(patient, job, release.signal));
  clearTimeout(timer);
  await registered;
}

/** A turn fails if its agent cannot read the task. In a rolling update or after an outage, relays may start later than agents. */
async function untilReadable(log: Log, signal: AbortSignal): Promise<void> {
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      await log.check();
      return;
    } catch {
      await sleepUnlessAborted(backoffMs(failures, CHECK_MS_BASE, CHECK_MS_MAX), signal);
    }
  }
}

async function runJob(options: ServingAgent, job: Job, release: AbortSignal): Promise<void> {
  const { log, name, metrics, endShownMsMax } = options;
  const { work, attempt, exhausted } = job;
  const logger = taskLogger(options.logger, work.taskId, work.owner);
  try {
    const outcome = await measuredTurn({ ...options, logger }, job, release);
    // An item that is only settled writes nothing but its end, so it does not matter which delivery is stored first.
    if (outcome.unneeded !== undefined || exhausted) return;
    job.leaveSlot?.();
    const waiting = { lastN: outcome.lastN, signal: release, ...(endShownMsMax !== undefined && { waitMs: endShownMsMax }) };
    await requireShownEnd(log, job, waiting);
  } catch (error) {
    const reason = requeueReason(error);
    const code = error instanceof AttemptFailed ? error.word : undefined;
    const fields = { agent: name, attempt, turn: work.turn, reason, code };
    metrics.requeues.add(1, { agent: name, reason });
    inTrace(job.trace, () => {
      if (isExpected(error)) logger.info(fields, LINE.turnRequeued);
      else logger.warn({ ...fields, err: error }, LINE.turnRequeued);
    });
    throw error;
  }
}

async function measuredTurn(options: ServingAgent, job: Job, release: AbortSignal): Promise<TurnOutcome> {
  const {
    log,
    name,
    agent,
    logger,
    metrics,
    retries = RETRIES_DEFAULT,
    forwardText = true,
    pace,
    showError,
    endShownMsMax,
    silent,
  } = options;
  const { work, attempt, exhausted } = job;
  const takenAt = Date.now();
  const cause = redeliveryCause(job);
  if (cause !== undefined) metrics.redeliveries.add(1, { agent: name, reason: cause });
  else measureQueue(metrics, name, job, takenAt);
  if (exhausted) metrics.deadLetters.add(1, { agent: name, reason: 'attempts_exhausted' });
  metrics.activeTasks.add(1, { agent: name });
  inTrace(job.trace, () => logger.info({ agent: name, attempt, turn: work.turn, cause }, LINE.turnTaken));
  // The agent may end the process with its first output.
  flushLog(logger);
  const startedMs = performance.now();
  try {
    const outcome = await runTurn(
      {
        log,
        agent,
        name,
        logger,
        showError,
        takenAt,
        retries,
        forwardText,
        pace,
        endShownMsMax,
        metrics,
        silent,
        signal: release,
      },
      job,
    );
    const isNeeded = outcome.unneeded === undefined;
    const state = (isNeeded ? stateWord(outcome.state) : 'unneeded') as TurnLabel;
    options.failed.add(outcome);
    metrics.turnsEnded.add(1, { agent: name, outcome: state });
    const fields = { agent: name, attempt, turn: work.turn, duration_ms: Math.round(performance.now() - startedMs) };
    const why = isNeeded ? { reason: outcome.reason, code: outcome.cause } : { reason: UNNEEDED_REASONS[outcome.unneeded] };
    const line = { ...fields, state, ...why };
    inTrace(job.trace, () => logger.info(line, LINE.turnEnded));
    return outcome;
  } finally {
    metrics.activeTasks.add(-1, { agent: name });
    const ms = performance.now() - startedMs;
    metrics.turnDuration.recordMs(ms, { agent: name }, job.trace);
    const { tenant } = metrics.parties.of(work.owner);
    metrics.tenantTurnTime.add(ms / 1_000, { tenant, agent: name });
  }
}

type TurnLabel = 'completed' | 'failed' | 'canceled' | 'rejected' | 'input-required' | 'auth-required' | 'unneeded';

/** Reasons in the log line for a turn that the task no longer needed. */
const UNNEEDED_REASONS: Record<UnneededTurn['unneeded'], string> = {
  [TASK_ENDED]: 'its task or its call had ended',
  'later turn': 'its task had a later turn',
  'other item': 'another item of the same work had written first',
};

/** When a client addresses the agent directly there is no call, and the item comes from the relay. */
function measureQueue(metrics: HopMetrics, agent: string, { work: { queuedAt, call }, trace }: Job, takenAt: number): void {
  const hop = call === undefined ? 'work_queue' : 'agent_queue';
  if (queuedAt !== undefined) metrics.hopDuration.recordMs(takenAt - queuedAt, { hop, agent }, trace);
}

function requeueReason(error: unknown): 'shutdown' | 'retry' | 'superseded' | 'fault' {
  if (error instanceof Requeued) return 'shutdown';
  if (error instanceof AttemptFailed) return 'retry';
  return error instanceof Superseded ? 'superseded' : 'fault';
}

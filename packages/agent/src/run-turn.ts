import { stateWord } from '@hopline/a2a';
import { readContextHistory } from '@hopline/context-history';
import { entryOf, hasWritten, type TaskAggregate } from '@hopline/events';
import { type Job, NO_LONGER_NEEDED, newestOfTurn, Requeued, Superseded } from '@hopline/log';
import { ROOT_AGENT } from '@hopline/task';
import {
  ATTR,
  correlationOf,
  errorWord,
  type Hop,
  invokeAgentSpan,
  inWork,
  ownerAttributes,
  startWorkHop,
} from '@hopline/telemetry';
import { AttemptFailed } from './attempt-failed.ts';
import { cancelRemoteRuns } from './cancel-remote-runs.ts';
import { NO_PRIOR_ATTEMPTS, readPriorAttempts } from './prior-attempts.ts';
import { readRemoteRuns } from './remote-runs-of-turn.ts';
import { AGENT_FAILED, type AttemptDeps, runAttempt } from './run-attempt.ts';
import { overBecause, watchTask } from './task-watch.ts';
import type { TurnOutcome } from './turn-end.ts';

/** Dependencies of `runTurn`; those of an attempt are shared by all turns. */
export type RunTurnDeps = AttemptDeps & {
  /** When the item was taken, in epoch milliseconds. All measurements start at this time. Default: now. */
  takenAt?: number;
};

/**
 * Runs one work item with an agent. Writes the agent's events to the log in order, as fast as the log accepts them. Stops when the task
 * ends or proceeds to a later turn, or when a newer attempt runs. Resolves when the end of the turn is stored, or when the task no longer
 * needs one; `requireShownEnd` decides when the item is done. Rejects if the item must be delivered again: with Requeued at a shutdown,
 * AttemptFailed, Superseded, or the error of the log.
 */
export async function runTurn(deps: RunTurnDeps, job: Job): Promise<TurnOutcome> {
  const { log, name, takenAt = Date.now() } = deps;
  const { work, item, attempt } = job;
  const newest = await newestOfTurn(log.facts, job, deps.signal);
  const over = overBecause(newest.record.aggregate, job);
  if (over === 'superseded') throw new Superseded();
  if (over !== undefined) {
    // The process of an earlier delivery may have died and left its run open on a server.
    if (attempt > 1 && over !== 'other item') {
      const runs = await readRemoteRuns(log, newest, work);
      await cancelRemoteRuns(deps, job, { runs, trace: job.trace });
    }
    return { unneeded: over };
  }
  if (hasWritten(newest.record.aggregate, { id: work.call?.id ?? ROOT_AGENT, item, attempt })) throw new Superseded();
  const waitsForCredentials = isWaitingForCredentials(newest.record.aggregate, work.call?.id);
  const history = await readContextHistory(log, newest, work.turn);
  const prior = attempt > 1 ? await readPriorAttempts(log, newest, work) : NO_PRIOR_ATTEMPTS;
  if (prior.lastAt !== undefined)
    deps.metrics?.hopDuration.recordMs(takenAt - prior.lastAt, { hop: 'redelivery', agent: name }, job.trace);
  const hop = startHopOf(name, job, takenAt);
  const stop = new AbortController();
  const watching = watchTask(log, job, stop.signal);
  try {
    const active = {
      agent: name,
      taskId: work.taskId,
      contextId: work.contextId,
      owner: work.owner,
      tenant: deps.metrics?.parties.of(work.owner).tenant ?? 'none',
      span: hop.segmentCarrier(),
    };
    const attempted = () => runAttempt(deps, job, { hop, takenAt, history, waitsForCredentials, prior, watching });
    const outcome = await hop.run(() => inWork(active, attempted));
    const state = outcome.state && stateWord(outcome.state);
    hop.set({ [ATTR.outcome]: state ?? 'unneeded', [ATTR.a2aState]: state });
    if (outcome.state === 'TASK_STATE_FAILED') hop.fail(outcome.cause ?? AGENT_FAILED);
    return outcome;
  } catch (error) {
    hop.set({ [ATTR.outcome]: outcomeOf(error) });
    // A turn that is released or superseded is not an error: another attempt continues.
    if (error instanceof AttemptFailed) hop.fail(error.word);
    else if (!isExpected(error)) hop.fail(errorWord(error));
    throw error;
  } finally {
    stop.abort(NO_LONGER_NEEDED);
    hop.end();
  }
}

/** Errors that end an attempt but are not faults. */
export function isExpected(error: unknown): error is Error {
  return error instanceof Superseded || error instanceof Requeued || error instanceof AttemptFailed;
}

function outcomeOf(error: unknown): 'requeued' | 'superseded' | 'failed' {
  if (error instanceof Requeued) return 'requeued';
  return error instanceof Superseded ? 'superseded' : 'failed';
}

function startHopOf(name: string, { work, item, attempt, requeues, trace }: Job, takenAt: number): Hop {
  const { taskId, contextId, turn, queuedAt } = work;
  const delivery = { taskId, role: `agent.${name}`, item, attempt, requeues, queuedAt, takenAt, trace };
  return startWorkHop(invokeAgentSpan(name), 'client', delivery, {
    [ATTR.genAiOperation]: 'invoke_agent',
    [ATTR.genAiAgentName]: name,
    [ATTR.genAiConversation]: contextId,
    [ATTR.call]: work.call?.id,
    [ATTR.correlation]: correlationOf(work.metadata),
    [ATTR.turn]: turn,
    [ATTR.profile]: work.profile,
    ...ownerAttributes(work.owner),
  });
}

/** Whether the agent of a call, or the one that was addressed directly, waits for credentials. */
function isWaitingForCredentials({ state, calls }: TaskAggregate, call: string | undefined): boolean {
  if (state !== 'TASK_STATE_AUTH_REQUIRED') return false;
  // A relay of the previous version does not record which calls wait.
  const isNoted = Object.values(calls).some(({ authRequest }) => authRequest !== undefined);
  return call === undefined || !isNoted || entryOf(calls, call)?.authRequest !== undefined;
}

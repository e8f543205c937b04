import { isInterrupted, isTerminal } from '@hopline/a2a';
import {
  type CopyForwardInput,
  entryOf,
  type TaskAggregate,
  type TimeoutInput,
  type TurnQueuedInput,
  type WorkGoneInput,
} from '@hopline/events';
import type { Command, LostInputs } from './commands.ts';
import { decideAgent, decideRun, hasEnded, isKnownProducer, queued, rootProducer } from './decide-agent.ts';
import { decideClient } from './decide-client.ts';
import { type Decision, failTask, reject } from './decision.ts';

/**
 * The rules of a task: the facts that follow from a command, given the aggregate. Pure: no I/O, no clock, no random ids. `atMs`
 * is the relay's clock, epoch milliseconds; the time of facts never decreases, whatever the clock does. The facts of one decision
 * are stored together or not at all.
 */
export function decide(aggregate: TaskAggregate | undefined, command: Command, atMs: number): Decision {
  const at = Math.max(Math.round(atMs), aggregate?.at ?? 0);
  switch (command.kind) {
    case 'client':
      return decideClient(aggregate, command, at);
    case 'agent':
      return decideAgent(aggregate, command, at);
    case 'run':
      return decideRun(aggregate, command, at);
    case 'lost':
      return decideLost(aggregate, command, at);
    case 'timeout':
    case 'auth-timeout':
      return decideTimeout(aggregate, command, at);
    case 'copy-forward':
      return decideCopyForward(aggregate, command, at);
    case 'work-gone':
      return decideWorkGone(aggregate, command, at);
    case 'queued':
      return decideQueued(aggregate, command, at);
    case 'unreadable':
      return decideUnreadable(aggregate, at);
    case 'unknown':
      return reject('unknown kind');
  }
}

/** Reason of a task that failed because retention removed inputs that no relay had read. */
export const INPUTS_LOST = 'inputs were removed from the log before a relay could read them';

/** Makes the task fail with the reason, because text with a gap must not look complete. */
function decideLost(aggregate: TaskAggregate | undefined, { from }: LostInputs, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  if (from.turn !== aggregate.turn) return reject('stale turn');
  if (!isKnownProducer(aggregate, from.id)) return reject('unknown call');
  if (hasEnded(aggregate, from)) return reject('ended call');
  return failTask(aggregate, INPUTS_LOST, at);
}

/** Reason of a task that failed because the queue has lost the work item of its turn. Retryable. */
export const WORK_LOST = 'the work item of the turn is gone';

/** A worker stores the end of its turn before its work item is done. So if there is no item, the end must have been read by now. */
function decideWorkGone(aggregate: TaskAggregate | undefined, { turn, call, lost }: WorkGoneInput, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  if (turn !== aggregate.turn) return reject('stale turn');
  if (isInterrupted(aggregate.state)) return reject('no change');
  if (call !== undefined && entryOf(aggregate.calls, call)?.state !== undefined) return reject('ended call');
  return lost === 'item' ? failTask(aggregate, WORK_LOST, at, true) : failTask(aggregate, INPUTS_LOST, at);
}

/** The turn waits until its root producer has written. */
function decideQueued(aggregate: TaskAggregate | undefined, { turn, message }: TurnQueuedInput, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  if (turn !== aggregate.turn) return reject('stale turn');
  if (entryOf(aggregate.producers, rootProducer(aggregate)) !== undefined) return reject('no change');
  return queued(aggregate, { kind: 'queued', message }, at);
}

/** Reason of a task that failed because a relay could not apply one of its inputs. */
export const INPUT_UNREADABLE = 'an input of this task could not be applied';

function decideUnreadable(aggregate: TaskAggregate | undefined, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  return isTerminal(aggregate.state) ? reject('terminal') : failTask(aggregate, INPUT_UNREADABLE, at);
}

/** Reason of a task that failed because nothing happened in it between two copies of its facts. Retryable. */
export const WORKER_GONE = 'no worker has continued the task';

/**
 * Makes no fact for an open task: the relay stores its facts again. The facts of an ended task may expire. If nothing was stored for a task
 * in progress since the last copy, it has no worker and fails; otherwise copies would keep it forever. A task that waits for its client is
 * kept.
 */
function decideCopyForward(
  aggregate: TaskAggregate | undefined,
  { startStoredAt, idleSince = startStoredAt }: CopyForwardInput,
  at: number,
): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  const isIdle = aggregate.at < idleSince && !isInterrupted(aggregate.state);
  return isIdle ? failTask(aggregate, WORKER_GONE, at, true) : { facts: [] };
}

/** Reason of a task that failed because the client did not answer. Retryable: nothing was wrong with the request. */
export const INPUT_TIMEOUT = 'input timeout';
/** Reason of a task that failed because no credentials arrived. Retryable. */
export const AUTH_TIMEOUT = 'auth timeout';

/** A timeout applies only to the request that it names, and only if that request was not answered or repeated in the meantime. */
function decideTimeout(aggregate: TaskAggregate | undefined, { kind, request }: TimeoutInput, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  const isAuth = kind === 'auth-timeout';
  const pending = isAuth ? aggregate.authRequest : aggregate.inputRequest;
  const waiting = isAuth ? 'TASK_STATE_AUTH_REQUIRED' : 'TASK_STATE_INPUT_REQUIRED';
  if (aggregate.state !== waiting || pending?.n !== request) return reject('not waiting');
  return failTask(aggregate, isAuth ? AUTH_TIMEOUT : INPUT_TIMEOUT, at, true);
}

import { isTerminal } from '@hopline/a2a';
import type { TaskAggregate, TimeoutInput } from '@hopline/events';
import type { Command, LostInputs } from './commands.ts';
import { decideAgent } from './decide-agent.ts';
import { decideClient } from './decide-client.ts';
import { decideRun } from './decide-run.ts';
import { type Decision, failTask, reject } from './decision.ts';

/**
 * The rules of a task: what an item means, given all that happened before. Pure: no I/O, no clock, no ids made of chance.
 * `atMs` is the relay's clock, epoch milliseconds; facts never go back in time, whatever it says.
 * The facts of one decision are stored together or not at all.
 */
export function decide(aggregate: TaskAggregate | undefined, item: Command, atMs: number): Decision {
  const at = Math.max(Math.round(atMs), aggregate?.at ?? 0);
  switch (item.kind) {
    case 'client':
      return decideClient(aggregate, item, at);
    case 'agent':
      return decideAgent(aggregate, item, at);
    case 'run':
      return decideRun(aggregate, item, at);
    case 'lost':
      return decideLost(aggregate, item, at);
    case 'timeout':
    case 'auth-timeout':
      return decideTimeout(aggregate, item, at);
    case 'copy-forward':
      return decideCopyForward(aggregate);
  }
}

/** A text with a hole is never shown as if it were whole: the task fails, and says why. */
function decideLost(aggregate: TaskAggregate | undefined, item: LostInputs, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  if (item.from.turn !== aggregate.turn) return reject('stale turn');
  return failTask(aggregate, 'inputs were removed from the log before a relay could read them', at);
}

/** No new fact: those of an open task are stored again. What has ended needs no more time than it has. */
function decideCopyForward(aggregate: TaskAggregate | undefined): Decision {
  if (aggregate === undefined) return reject('unknown task');
  return isTerminal(aggregate.state) ? reject('terminal') : { facts: [] };
}

/** Why a task failed whose client did not answer (S3-8). Nothing was wrong with what it asked: it may ask anew. */
export const INPUT_TIMEOUT = 'input timeout';
/** The same of one that got no credentials. */
export const AUTH_TIMEOUT = 'auth timeout';

/** Only the very question that waited is ended: one that was answered, or asked again since, is not. */
function decideTimeout(aggregate: TaskAggregate | undefined, item: TimeoutInput, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  const ofAuth = item.kind === 'auth-timeout';
  const asked = ofAuth ? aggregate.authRequest : aggregate.inputRequest;
  const waiting = ofAuth ? 'TASK_STATE_AUTH_REQUIRED' : 'TASK_STATE_INPUT_REQUIRED';
  if (aggregate.state !== waiting || asked?.n !== item.request) return reject('not waiting');
  return failTask(aggregate, ofAuth ? AUTH_TIMEOUT : INPUT_TIMEOUT, at, true);
}

import { isTerminal } from '@hopline/a2a';
import type { TaskControl, TimeoutInput } from '@hopline/events';
import type { Item, LostInputs } from './commands.ts';
import { decideAgent } from './decide-agent.ts';
import { decideClient } from './decide-client.ts';
import { decideRun } from './decide-run.ts';
import { type Decision, drop, failTask } from './decision.ts';

/**
 * The rules of a task: what an item means, given all that happened before. Pure: no I/O, no clock, no ids made of chance.
 * `atMs` is the relay's clock, epoch milliseconds; facts never go back in time, whatever it says.
 * The facts of one decision are stored together or not at all.
 */
export function decide(control: TaskControl | undefined, item: Item, atMs: number): Decision {
  const at = Math.max(Math.round(atMs), control?.at ?? 0);
  switch (item.kind) {
    case 'client':
      return decideClient(control, item, at);
    case 'agent':
      return decideAgent(control, item, at);
    case 'run':
      return decideRun(control, item, at);
    case 'lost':
      return decideLost(control, item, at);
    case 'timeout':
    case 'auth-timeout':
      return decideTimeout(control, item, at);
    case 'carry':
      return decideCarry(control);
  }
}

/** A text with a hole is never shown as if it were whole: the task fails, and says why. */
function decideLost(control: TaskControl | undefined, item: LostInputs, at: number): Decision {
  if (control === undefined) return drop('unknown task');
  if (isTerminal(control.state)) return drop('terminal');
  if (item.from.turn !== control.turn) return drop('stale turn');
  return failTask(control, 'inputs were removed from the log before a relay could read them', at);
}

/** No new fact: those of an open task are stored again. What has ended needs no more time than it has. */
function decideCarry(control: TaskControl | undefined): Decision {
  if (control === undefined) return drop('unknown task');
  return isTerminal(control.state) ? drop('terminal') : { facts: [] };
}

/** Why a task failed whose client did not answer (S3-8). Nothing was wrong with what it asked: it may ask anew. */
export const INPUT_TIMEOUT = 'input timeout';
/** The same of one that got no credentials. */
export const AUTH_TIMEOUT = 'auth timeout';

/** Only the very question that waited is ended: one that was answered, or asked again since, is not. */
function decideTimeout(control: TaskControl | undefined, item: TimeoutInput, at: number): Decision {
  if (control === undefined) return drop('unknown task');
  if (isTerminal(control.state)) return drop('terminal');
  const ofAuth = item.kind === 'auth-timeout';
  const asked = ofAuth ? control.authAsked : control.asked;
  const waiting = ofAuth ? 'TASK_STATE_AUTH_REQUIRED' : 'TASK_STATE_INPUT_REQUIRED';
  if (control.state !== waiting || asked?.n !== item.question) return drop('not waiting');
  return failTask(control, ofAuth ? AUTH_TIMEOUT : INPUT_TIMEOUT, at, true);
}

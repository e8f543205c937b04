import type { TaskControl } from '@hopline/events';
import { decideAgent } from './decide-agent.ts';
import { decideClient } from './decide-client.ts';
import { decideRun } from './decide-run.ts';
import type { Decision } from './decision.ts';
import type { Item } from './items.ts';

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
  }
}

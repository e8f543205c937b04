import type { AgentInput, ClientInput, RelayInput } from '@hopline/events';
import type { RejectionReason } from '@hopline/task';

export type InputKind = (ClientInput | RelayInput | AgentInput)['kind'];

/** Every kind of input, tokens counted one by one: none may be left out of the books (S2-13, S2-32). */
export const INPUT_KINDS = [
  'message',
  'cancel',
  'timeout',
  'auth-timeout',
  'copy-forward',
  'open',
  'text',
  'close',
  'artifact',
  'status',
  'call',
  'ended',
  'step',
] as const satisfies InputKind[];

/** What became of the inputs of one kind. */
export type Tally = {
  received: number;
  /** Read again after a takeover, or stored twice: known by their ordinal. */
  duplicates: number;
  /** What the rules of a task refuse, with the reason. */
  rejected: { [reason in RejectionReason]?: number };
  /** What the rules make facts of. */
  accepted: number;
  /** Not decided yet: behind the newest record of a task that goes on. */
  pending: number;
};

export type Tallies = Record<InputKind, Tally>;

export function emptyTallies(): Tallies {
  const entries = INPUT_KINDS.map(kind => [kind, { received: 0, duplicates: 0, rejected: {}, accepted: 0, pending: 0 }] as const);
  return Object.fromEntries(entries) as Tallies;
}

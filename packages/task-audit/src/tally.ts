import type { InputKind } from '@hopline/events';
import type { RejectionReason } from '@hopline/task';

/** Every kind of input: the audit accounts for all of them (S2-13, S2-32). */
export const INPUT_KINDS = [
  'message',
  'cancel',
  'timeout',
  'auth-timeout',
  'copy-forward',
  'work-gone',
  'open',
  'text',
  'close',
  'artifact',
  'status',
  'queued',
  'call',
  'ended',
  'step',
  'remote-run',
  'agent-step',
  'malformed',
] as const satisfies InputKind[];

/** Outcomes of the inputs of one kind. Each token counts. */
export type Tally = {
  received: number;
  /** Stored twice, with an ordinal that was seen before. */
  duplicates: number;
  /** Rejected by the decider, by reason. */
  rejected: { [reason in RejectionReason]?: number };
  /** Accepted by the decider. */
  accepted: number;
  /** Above the newest record of an open task, so not decided yet. */
  pending: number;
};

export type Tallies = Record<InputKind, Tally>;

export function emptyTallies(): Tallies {
  const entries = INPUT_KINDS.map(kind => [kind, { received: 0, duplicates: 0, rejected: {}, accepted: 0, pending: 0 }] as const);
  return Object.fromEntries(entries) as Tallies;
}

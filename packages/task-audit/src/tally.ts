import type { InputKind } from '@hopline/events';
import type { RejectionReason } from '@hopline/task';

const KINDS = {
  message: true,
  cancel: true,
  timeout: true,
  'auth-timeout': true,
  'copy-forward': true,
  'work-gone': true,
  open: true,
  text: true,
  close: true,
  artifact: true,
  status: true,
  queued: true,
  call: true,
  ended: true,
  step: true,
  'remote-run': true,
  'agent-step': true,
  malformed: true,
  unknown: true,
} satisfies Record<InputKind, true>;

/** Every kind of input: the audit accounts for all of them (S2-13, S2-32). */
export const INPUT_KINDS = Object.keys(KINDS) as InputKind[];

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

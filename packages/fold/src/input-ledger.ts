import { type AgentInput, type ClientInput, type InputKind, ordinalsOf, type RelayInput } from '@hopline/events';
import type { Command, RejectionReason } from '@hopline/task';

/**
 * Every input is `received` once and settled once: accepted or rejected by the decider, dropped as a duplicate, or abandoned when its
 * pipeline stops before the decision. `received` minus all others is the number of inputs that a relay holds now, which is 0 at rest
 * (S2-32).
 */
export type InputOutcome = 'received' | 'accepted' | 'rejected' | 'duplicate' | 'abandoned';

type InputLedgerOptions = {
  onOutcome: (kind: InputKind, outcome: InputOutcome, count: number) => void;
  onRejected: (reason: RejectionReason, count: number) => void;
};

/** Accounts for the inputs of one task in one relay, by kind. Each token counts. */
export class InputLedger {
  readonly #options: InputLedgerOptions;
  readonly #unsettled = new Map<InputKind, number>();

  constructor(options: InputLedgerOptions) {
    this.#options = options;
  }

  receive(kind: InputKind, count = 1): void {
    this.#unsettled.set(kind, (this.#unsettled.get(kind) ?? 0) + count);
    this.#options.onOutcome(kind, 'received', count);
  }

  settle(kind: InputKind, outcome: Exclude<InputOutcome, 'received'>, count = 1): void {
    if (count === 0) return;
    this.#unsettled.set(kind, (this.#unsettled.get(kind) ?? 0) - count);
    this.#options.onOutcome(kind, outcome, count);
  }

  /** Settles the inputs of a command that the decider accepted, or rejected with a reason. */
  settleCommand(command: Command, rejected: RejectionReason | undefined): void {
    const count = command.kind === 'run' ? command.chunk.count : 1;
    if (command.kind !== 'lost' && command.kind !== 'unreadable') {
      const kind = command.kind === 'run' ? 'text' : 'input' in command ? command.input.kind : command.kind;
      this.settle(kind, rejected === undefined ? 'accepted' : 'rejected', count);
    }
    if (rejected !== undefined) this.reject(rejected, count);
  }

  /** Receives and rejects every input of a record. */
  rejectRecord(inputs: readonly (AgentInput | ClientInput | RelayInput)[], reason: RejectionReason): void {
    let count = 0;
    for (const input of inputs) {
      const ordinals = input.kind === 'text' ? ordinalsOf(input) : 1;
      this.receive(input.kind, ordinals);
      this.settle(input.kind, 'rejected', ordinals);
      count += ordinals;
    }
    this.reject(reason, count);
  }

  /** Counts a rejection of inputs that another call settles. */
  reject(reason: RejectionReason, count: number): void {
    this.#options.onRejected(reason, count);
  }

  close(): void {
    for (const [kind, count] of this.#unsettled) this.settle(kind, 'abandoned', count);
  }
}

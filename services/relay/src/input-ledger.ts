import { type AgentInput, type AgentRecord, type ClientInput, ordinalsOf, type RelayInput } from '@hopline/events';
import type { Command } from '@hopline/task';

export type InputKind = (ClientInput | AgentInput | RelayInput)['kind'];

/**
 * `taken`: read from the log. Then each input is one of the others: the rules made something of it, or refused it, it was known already, or its pipeline ended before it was decided (and
 * the next one takes it anew). So `taken` less the others is what a relay holds now, and 0 when it is at rest (S2-32).
 */
export type Outcome = 'taken' | 'accepted' | 'dropped' | 'repeated' | 'abandoned';

/** What became of the inputs of one task in one relay, by kind; each token counts. */
export class InputLedger {
  readonly #note: (kind: InputKind, outcome: Outcome, count: number) => void;
  readonly #open = new Map<InputKind, number>();

  constructor(note: (kind: InputKind, outcome: Outcome, count: number) => void) {
    this.#note = note;
  }

  take(kind: InputKind, count = 1): void {
    this.#open.set(kind, (this.#open.get(kind) ?? 0) + count);
    this.#note(kind, 'taken', count);
  }

  settle(kind: InputKind, outcome: Exclude<Outcome, 'taken'>, count = 1): void {
    if (count === 0) return;
    this.#open.set(kind, (this.#open.get(kind) ?? 0) - count);
    this.#note(kind, outcome, count);
  }

  /** A whole record that a later attempt has overtaken. Returns how many inputs it had. */
  dropRecord({ inputs }: AgentRecord): number {
    for (const input of inputs) {
      this.take(input.kind, ordinalsOf(input));
      this.settle(input.kind, 'dropped', ordinalsOf(input));
    }
    return inputs.reduce((sum, input) => sum + ordinalsOf(input), 0);
  }

  decided(item: Command, isDropped: boolean): void {
    if (item.kind === 'lost') return;
    const kind = item.kind === 'run' ? 'text' : 'input' in item ? item.input.kind : item.kind;
    this.settle(kind, isDropped ? 'dropped' : 'accepted', item.kind === 'run' ? item.chunk.count : 1);
  }

  close(): void {
    for (const [kind, count] of this.#open) this.settle(kind, 'abandoned', count);
  }
}

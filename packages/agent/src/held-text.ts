import type { LaneArtifact } from '@hopline/events';
import type { Lanes, TextLanes } from './lanes.ts';
import { BoundExceeded } from './limits.ts';
import type { Saying } from './said-text.ts';

/** Policy `forwardText: false` (C-5): text goes here in place of the lanes that a client sees. The supervisor reads it when it is whole. */
export class HeldText implements TextLanes {
  readonly #lanes: Lanes;
  readonly #unitsMax: number;
  /** By lane, in order of their first text. */
  readonly #texts = new Map<string, string>();
  #units = 0;

  /** `unitsMax`: UTF-16 units of all texts together. */
  constructor(lanes: Lanes, unitsMax: number) {
    this.#lanes = lanes;
    this.#unitsMax = unitsMax;
  }

  /** Throws BoundExceeded, and then keeps what it had: it must still fit into the event that carries it. */
  say(lane: string, _header: LaneArtifact, saying: Saying | undefined): void {
    if (saying === undefined) return;
    const said = this.#texts.get(lane) ?? '';
    const units = this.#units + saying.text.length - (saying.replace ? said.length : 0);
    if (units > this.#unitsMax)
      throw new BoundExceeded(`the agent said more than ${this.#unitsMax} characters that are not forwarded`);
    this.#units = units;
    this.#texts.set(lane, saying.replace ? saying.text : said + saying.text);
  }

  /** A dead attempt may have served another policy: what it showed is replaced by nothing. */
  open(lane: string, header: LaneArtifact): void {
    this.#lanes.open(lane, header);
  }

  get text(): string {
    return [...this.#texts.values()].join('');
  }
}

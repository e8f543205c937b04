import type { LaneArtifact } from '@hopline/events';
import type { LaneWriter, TextChange, TextLanes } from './lane-writer.ts';
import { BoundExceeded } from './limits.ts';

/** Policy `forwardText: false` (C-5): collects the text that clients do not see. The supervisor reads it with the end of the call. */
export class WithheldText implements TextLanes {
  readonly #lanes: LaneWriter;
  readonly #unitsMax: number;
  /** Keyed by lane, in the order of their first text. */
  readonly #texts = new Map<string, string>();
  #units = 0;

  /** `unitsMax`: UTF-16 units of all texts together. */
  constructor(lanes: LaneWriter, unitsMax: number) {
    this.#lanes = lanes;
    this.#unitsMax = unitsMax;
  }

  /** Throws BoundExceeded. The text so far is kept, because it still fits into the event that ends the call. */
  token(lane: string, _header: LaneArtifact, text: string): void {
    this.#set(lane, text.length, (this.#texts.get(lane) ?? '') + text);
  }

  /** Throws like `token`. */
  write(lane: string, header: LaneArtifact, change: TextChange | undefined): void {
    if (change?.replace) this.#set(lane, change.text.length - (this.#texts.get(lane)?.length ?? 0), change.text);
    else if (change !== undefined) this.token(lane, header, change.text);
  }

  /** `unitsAdded`: UTF-16 code units of the text, minus those of the text that it replaces. */
  #set(lane: string, unitsAdded: number, text: string): void {
    const units = this.#units + unitsAdded;
    if (units > this.#unitsMax)
      throw new BoundExceeded(`the agent sent more than ${this.#unitsMax} characters of text that is not forwarded`);
    this.#units = units;
    this.#texts.set(lane, text);
  }

  /** An earlier attempt may have run under another policy. The empty lane replaces the text that it streamed. */
  open(lane: string, header: LaneArtifact): void {
    this.#lanes.open(lane, header);
  }

  get text(): string {
    return [...this.#texts.values()].join('');
  }
}

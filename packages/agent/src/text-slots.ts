import type { InputSource, LaneArtifact } from '@hopline/events';
import type { TextLanes } from './lanes.ts';
import { BoundExceeded, TURN_TEXTS_MAX } from './limits.ts';
import { SaidText } from './said-text.ts';

/** One artifact of text, and the stream of the agent that speaks in it now. */
export type TextSlot = {
  readonly lane: string;
  readonly header: LaneArtifact;
  readonly said: SaidText;
  stream: string;
  ended: boolean;
};

export type TextSlotsOptions = {
  lanes: TextLanes;
  /** Of the first slot; the others are numbered behind it. */
  lane: string;
  /** What a client sees of slot `index`, from 0. */
  header: (index: number) => LaneArtifact;
  /** A stream that begins goes on in the artifact of one that has ended. Without it each has an artifact of its own, as long as there are TURN_TEXTS_MAX. */
  shared?: boolean;
};

/** The texts of an agent that may say several at once (S1-25): a stream never goes on in an artifact in which another one is still speaking. Text without a stream is one stream, too. */
export class TextSlots {
  readonly #options: TextSlotsOptions;
  readonly #slots: TextSlot[] = [];
  readonly #ofStream = new Map<string, TextSlot>();

  constructor(options: TextSlotsOptions) {
    this.#options = options;
  }

  /** In the order in which they were opened. */
  get all(): readonly TextSlot[] {
    return this.#slots;
  }

  /** Throws BoundExceeded when more than TURN_TEXTS_MAX speak at once. */
  of(stream = ''): TextSlot {
    const known = this.#ofStream.get(stream);
    if (known?.stream === stream) return known;
    const slot = this.#free() ?? this.#open(stream);
    slot.stream = stream;
    slot.ended = false;
    this.#ofStream.set(stream, slot);
    return slot;
  }

  say(text: string, { stream, id, source }: { stream?: string; id?: string; source?: InputSource }): void {
    const slot = this.of(stream);
    this.#options.lanes.say(slot.lane, slot.header, slot.said.token(text), {
      ...(id !== undefined && { id }),
      ...(source && { source }),
    });
  }

  /** The stream says no more. Its artifact stays open until the turn ends: a later attempt must be able to replace it. */
  end(stream: string): void {
    const slot = this.#ofStream.get(stream);
    if (slot?.stream === stream) slot.ended = true;
  }

  /** Opens again what an earlier attempt showed, so that none of it stands beside what this one says. */
  replace(shown: ReadonlySet<string>): void {
    const { lanes, lane, header } = this.#options;
    lanes.open(lane, header(0));
    for (let index = 1; index < TURN_TEXTS_MAX; index++)
      if (shown.has(this.#laneOf(index))) lanes.open(this.#laneOf(index), header(index));
  }

  #free(): TextSlot | undefined {
    const { shared = false } = this.#options;
    return shared || this.#slots.length >= TURN_TEXTS_MAX ? this.#slots.find(slot => slot.ended) : undefined;
  }

  #open(stream: string): TextSlot {
    const index = this.#slots.length;
    if (index >= TURN_TEXTS_MAX) throw new BoundExceeded(`the agent said more than ${TURN_TEXTS_MAX} texts at once`);
    const slot = { lane: this.#laneOf(index), header: this.#options.header(index), said: new SaidText(), stream, ended: false };
    this.#slots.push(slot);
    return slot;
  }

  #laneOf(index: number): string {
    return index === 0 ? this.#options.lane : `${this.#options.lane}.${index + 1}`;
  }
}

import type { LaneArtifact } from '@hopline/events';
import { LaneText } from './growing-text.ts';
import type { TextLanes, TokenOrigin } from './lane-writer.ts';
import { BoundExceeded, TURN_TEXTS_MAX } from './limits.ts';

/** One lane of text, and the stream of the agent that currently writes to it. */
type StreamLane = {
  readonly lane: string;
  readonly header: LaneArtifact;
  readonly content: LaneText;
  stream: string;
  ended: boolean;
};

type TextStreamsOptions = {
  lanes: TextLanes;
  /** Name of the first lane; the others are numbered after it. */
  lane: string;
  /** Artifact of lane `index`, from 0. */
  header: (index: number) => LaneArtifact;
  /**
   * True if a new stream takes over the lane of a stream that has ended. Otherwise each stream has a lane of its own, up to TURN_TEXTS_MAX.
   */
  shared?: boolean;
};

/**
 * Assigns streams of an agent to lanes: a stream never writes to a lane in which another stream is still open (S1-25).
 * Text without a stream counts as one stream.
 */
export class TextStreams {
  readonly #options: TextStreamsOptions;
  readonly #lanes: StreamLane[] = [];
  readonly #byStream = new Map<string, StreamLane>();

  constructor(options: TextStreamsOptions) {
    this.#options = options;
  }

  /** Lanes in order of opening. */
  get all(): readonly StreamLane[] {
    return this.#lanes;
  }

  /** The text outside of any stream. Empty if that text does not come through `token` or `snapshot`. */
  get text(): string {
    return this.#byStream.get('')?.content.text ?? '';
  }

  /** True when a stream of the agent has this text. */
  isStreamed(text: string): boolean {
    return this.#lanes.some(({ stream, content }) => stream !== '' && content.text === text);
  }

  /** Throws BoundExceeded when more than TURN_TEXTS_MAX streams are open. */
  laneOf(stream = ''): StreamLane {
    const known = this.#byStream.get(stream);
    if (known !== undefined) return known;
    const lane = this.#reusable() ?? this.#create(stream);
    this.#byStream.delete(lane.stream);
    lane.stream = stream;
    lane.ended = false;
    this.#byStream.set(stream, lane);
    return lane;
  }

  token(text: string, stream: string | undefined, origin?: TokenOrigin): void {
    const { lane, header, content } = this.laneOf(stream);
    if (text === '') return;
    content.add(text);
    this.#options.lanes.token(lane, header, text, origin);
  }

  /** `text` is the whole text so far of the lane that belongs to no stream. */
  snapshot(text: string): void {
    if (this.#lanes.length === 0 && text === '') return;
    const { lane, header, content } = this.laneOf();
    this.#options.lanes.write(lane, header, content.snapshot(text));
  }

  /** The stream has ended. Its lane stays open until the turn ends, because a later attempt must be able to replace its text. */
  end(stream: string): void {
    const lane = this.#byStream.get(stream);
    if (lane !== undefined) lane.ended = true;
  }

  /** Opens lanes of an earlier attempt again, so that none of its text remains next to this attempt's. */
  reopen(openLanes: ReadonlySet<string>): void {
    const { lanes, lane, header } = this.#options;
    lanes.open(lane, header(0));
    for (let index = 1; index < TURN_TEXTS_MAX; index++)
      if (openLanes.has(this.#name(index))) lanes.open(this.#name(index), header(index));
  }

  #reusable(): StreamLane | undefined {
    const { shared = false } = this.#options;
    return shared || this.#lanes.length >= TURN_TEXTS_MAX ? this.#lanes.find(({ ended }) => ended) : undefined;
  }

  #create(stream: string): StreamLane {
    const index = this.#lanes.length;
    if (index >= TURN_TEXTS_MAX) throw new BoundExceeded(`the agent streamed more than ${TURN_TEXTS_MAX} texts at once`);
    const header = this.#options.header(index);
    const lane = { lane: this.#name(index), header, content: new LaneText(), stream, ended: false };
    this.#lanes.push(lane);
    return lane;
  }

  #name(index: number): string {
    return index === 0 ? this.#options.lane : `${this.#options.lane}.${index + 1}`;
  }
}

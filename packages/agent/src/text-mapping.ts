import { type Message, textOf } from '@hopline/a2a';
import type { InputSource, LaneArtifact } from '@hopline/events';
import type { AgentEvent } from './agent.ts';
import { Answer } from './answer.ts';
import type { ArtifactLanes } from './artifact-lanes.ts';
import { HeldText } from './held-text.ts';
import type { Lanes, TextLanes } from './lanes.ts';
import { TextSlots } from './text-slots.ts';

export type ArtifactChunk = Omit<Extract<AgentEvent, { type: 'artifact' }>, 'type'>;
export type Said = { stream?: string; id?: string; source?: InputSource };
/** How the last message stands to the text said before it (`AgentEvent` done). */
export type Standing = 'repeats' | 'replaces';

/** How the text and the artifacts of an agent show to the client. */
export interface TextMapping {
  readonly slots: TextSlots;
  text(text: string, said: Said): void;
  snapshot(text: string): void;
  artifact(chunk: ArtifactChunk): void;
  /** The message a turn ended well with, if there was one; returns what is still to be shown. */
  ending(message: Message | undefined, standing: Standing | undefined): Message | undefined;
  /** The one message that is the whole answer; returns it if it is still to be shown. */
  whole(message: Message): Message | undefined;
  /** Text of the answer that was kept from the client; absent where policy keeps nothing. */
  readonly held?: string | undefined;
}

export type AnswerPlace = { lanes: Lanes; lane: string; header: LaneArtifact; artifacts: ArtifactLanes };

/** A supervisor shows one answer: all text of the agent is it, wherever it stands, and said once (S2-2). Other parts stay artifacts. Texts that are said at once are segments of it. */
export class AnswerMapping implements TextMapping {
  readonly slots: TextSlots;
  readonly #where: AnswerPlace;
  /** Of the text that belongs to no stream. */
  readonly #answer = new Answer();
  readonly #held: HeldText | undefined;
  /** Where text goes. */
  readonly #lanes: TextLanes;

  /** `heldUnitsMax`: UTF-16 units of an answer that the client does not see (policy `forwardText: false`); without it the client sees it. */
  constructor(where: AnswerPlace, heldUnitsMax?: number) {
    this.#where = where;
    this.#held = heldUnitsMax === undefined ? undefined : new HeldText(where.lanes, heldUnitsMax);
    this.#lanes = this.#held ?? where.lanes;
    this.slots = new TextSlots({ ...where, lanes: this.#lanes, header: () => where.header });
  }

  get held(): string | undefined {
    return this.#held?.text;
  }

  text(text: string, said: Said): void {
    if (said.stream === undefined) this.#loose(this.#answer.token(text), said);
    else this.slots.say(text, said);
  }

  snapshot(text: string): void {
    this.#loose(this.#answer.snapshot(text));
  }

  artifact({ artifact, append, lastChunk: last, apart, source }: ArtifactChunk): void {
    // Another supervisor's plan is a plan, not its answer.
    const isPlan = artifact.name !== undefined && PLANS.has(artifact.name);
    const isApart = isPlan || apart === true;
    const { artifactId: id, name, parts } = artifact;
    const others = isApart ? parts : parts.filter(part => part.text === undefined);
    const text = textOf(parts);
    const isNew = others.length < parts.length && !(last && !append && this.#isSaid(text));
    if (isNew) this.#loose(this.#answer.artifact({ id, name, text, append, last }));
    if (others.length > 0)
      this.#where.artifacts.take({ ...artifact, ...(isPlan && { name: NESTED_PLAN }), parts: others }, append, last, source);
  }

  ending(message: Message | undefined, standing: Standing | undefined): Message | undefined {
    const text = textOf(message?.parts ?? []);
    if (message === undefined || text === '') return message;
    const covered =
      standing === 'repeats' || this.#isSaid(text) || (standing === 'replaces' ? this.#replace(text) : this.#compare(text));
    return covered && message.parts.every(part => part.text !== undefined) ? undefined : message;
  }

  whole({ messageId, parts }: Message): undefined {
    this.artifact({ artifact: { artifactId: messageId, parts }, append: false, lastChunk: true });
  }

  #isSaid(text: string): boolean {
    return this.slots.all.some(({ stream, said }) => stream !== '' && said.text === text);
  }

  #compare(text: string): boolean {
    const { covered, saying } = this.#answer.ending(text);
    this.#loose(saying);
    return covered;
  }

  #replace(text: string): true {
    const [first, ...others] = this.slots.all;
    for (const { lane, header, said } of others) this.#lanes.say(lane, header, said.snapshot(''));
    if (first === undefined || first.stream === '') this.#loose(this.#answer.snapshot(text));
    else this.#lanes.say(first.lane, first.header, first.said.snapshot(text));
    return true;
  }

  #loose(saying: ReturnType<Answer['token']>, said: Said = {}): void {
    if (saying === undefined) return;
    const { lane, header } = this.slots.of();
    this.#lanes.say(lane, header, saying, said);
  }
}

/** The agent's own events pass: its artifacts as its artifacts, its messages as its messages. Text that is in neither is the artifact `header`, one for each stream. */
export class OwnMapping implements TextMapping {
  readonly slots: TextSlots;
  readonly #where: AnswerPlace;

  constructor(where: AnswerPlace) {
    this.#where = where;
    this.slots = new TextSlots({ ...where, header: () => where.header });
  }

  text(text: string, said: Said): void {
    this.slots.say(text, said);
  }

  snapshot(text: string): void {
    snapshotLoose(this.slots, this.#where.lanes, text);
  }

  artifact({ artifact, append, lastChunk, source }: ArtifactChunk): void {
    this.#where.artifacts.take(artifact, append, lastChunk, source);
  }

  ending(message: Message | undefined, standing: Standing | undefined): Message | undefined {
    // S2-2: what stands in the artifact is not said again. A message with more than text is more than that.
    return standing === 'repeats' && message?.parts.every(part => part.text !== undefined) ? undefined : message;
  }

  whole(message: Message): Message {
    return message;
  }
}

export function snapshotLoose(slots: TextSlots, lanes: Lanes, text: string): void {
  if (slots.all.length === 0 && text === '') return;
  const { lane, header, said } = slots.of();
  lanes.say(lane, header, said.snapshot(text));
}

const PLANS: ReadonlySet<string> = new Set(['execution_plan_streaming', 'execution_plan_update']);
/** Clients know the plan of a task by its name, and a task has one (S0-9). */
const NESTED_PLAN = 'agent_execution_plan';

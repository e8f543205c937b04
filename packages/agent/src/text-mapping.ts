import type { Artifact, Message, Part } from '@hopline/a2a';
import type { LaneArtifact } from '@hopline/events';
import { Answer } from './answer.ts';
import type { ArtifactLanes } from './artifact-lanes.ts';
import type { Lanes } from './lanes.ts';
import { BoundExceeded } from './limits.ts';
import { SaidText, type Saying } from './said-text.ts';

/** How the text and the artifacts of an agent show to the client. */
export interface TextMapping {
  text(text: string, id: string | undefined): void;
  snapshot(text: string): void;
  artifact(artifact: Artifact, append: boolean, last: boolean): void;
  /** The message a turn ended well with; returns it if it is still to be shown. */
  ending(message: Message): Message | undefined;
  /** The one message that is the whole answer; returns it if it is still to be shown. */
  whole(message: Message): Message | undefined;
  /** Text of the answer that was kept from the client. */
  readonly held: string | undefined;
}

export type AnswerPlace = { lanes: Lanes; lane: string; header: LaneArtifact; artifacts: ArtifactLanes };

/** A supervisor shows one answer: all text of the agent is it, wherever it stands, and said once (S2-2). Other parts stay artifacts. */
export class AnswerMapping implements TextMapping {
  readonly #where: AnswerPlace;
  readonly #answer = new Answer();
  /** Policy `forwardText: false`: the client does not see the answer, the supervisor reads it when it is whole. UTF-16 units it may have. */
  readonly #heldUnitsMax: number | undefined;

  constructor(where: AnswerPlace, heldUnitsMax?: number) {
    this.#where = where;
    this.#heldUnitsMax = heldUnitsMax;
  }

  get held(): string | undefined {
    return this.#heldUnitsMax === undefined ? undefined : this.#answer.text;
  }

  text(text: string, id: string | undefined): void {
    this.#say(this.#answer.token(text), id);
  }

  snapshot(text: string): void {
    this.#say(this.#answer.snapshot(text));
  }

  artifact(artifact: Artifact, append: boolean, last: boolean): void {
    const { artifacts } = this.#where;
    // Another supervisor's plan is a plan, not its answer.
    const isPlan = artifact.name !== undefined && PLANS.has(artifact.name);
    const { artifactId: id, name, parts } = artifact;
    // Nor is what a model thinks.
    const others = isPlan || artifact.name === REASONING ? parts : parts.filter(part => part.text === undefined);
    const saying = others.length < parts.length && this.#answer.artifact({ id, name, text: textOf(parts), append, last });
    if (saying) this.#say(saying);
    if (others.length > 0) artifacts.take({ ...artifact, ...(isPlan && { name: NESTED_PLAN }), parts: others }, append, last);
  }

  ending(message: Message): Message | undefined {
    const text = textOf(message.parts);
    if (text === '') return message;
    const { covered, saying } = this.#answer.ending(text);
    this.#say(saying);
    return covered && message.parts.every(part => part.text !== undefined) ? undefined : message;
  }

  whole({ messageId, parts }: Message): undefined {
    this.artifact({ artifactId: messageId, parts }, false, true);
  }

  #say(saying: Saying | undefined, id?: string): void {
    const { lanes, lane, header } = this.#where;
    if (this.#heldUnitsMax === undefined) lanes.say(lane, header, saying, id);
    else if (this.#answer.length > this.#heldUnitsMax)
      throw new BoundExceeded(`the agent said more than ${this.#heldUnitsMax} characters that are not forwarded`);
  }
}

/** The agent's own events pass: its artifacts as its artifacts, its messages as its messages. Text that is in neither is the artifact `header`. */
export class OwnMapping implements TextMapping {
  readonly held = undefined;
  readonly #where: AnswerPlace;
  readonly #said = new SaidText();

  constructor(where: AnswerPlace) {
    this.#where = where;
  }

  text(text: string, id: string | undefined): void {
    const { lanes, lane, header } = this.#where;
    lanes.say(lane, header, this.#said.token(text), id);
  }

  snapshot(text: string): void {
    const { lanes, lane, header } = this.#where;
    lanes.say(lane, header, this.#said.snapshot(text));
  }

  artifact(artifact: Artifact, append: boolean, last: boolean): void {
    this.#where.artifacts.take(artifact, append, last);
  }

  ending(message: Message): Message {
    return message;
  }

  whole(message: Message): Message {
    return message;
  }
}

const PLANS: ReadonlySet<string> = new Set(['execution_plan_streaming', 'execution_plan_update']);
/** Clients know the plan of a task by its name, and a task has one (S0-9). */
const NESTED_PLAN = 'agent_execution_plan';
const REASONING = 'reasoning';

function textOf(parts: readonly Part[]): string {
  let text = '';
  for (const part of parts) text += part.text ?? '';
  return text;
}

import type { Message } from '@hopline/a2a';
import type { LaneArtifact } from '@hopline/events';
import { type AnswerPlace, type ArtifactChunk, type Said, snapshotLoose, type TextMapping } from './text-mapping.ts';
import { TextSlots } from './text-slots.ts';

/** S1-26: front ends of Aion know the stream by these. */
const DELTA_ID = 'aion:stream-delta';
const DELTA_NAME = 'Stream Delta';

/**
 * Profile `aion`: text that streams is a transitory artifact, and what lasts is the message at the end: the agent's own, else one that holds all that was streamed (S1-24). One stream after the other
 * goes on in the same artifact, as seen from S1-26; streams at the same time have one each, the first the well-known id (S1-25).
 */
export class AionMapping implements TextMapping {
  readonly slots: TextSlots;
  readonly #where: AnswerPlace;
  readonly #messageId: string;

  constructor(where: AnswerPlace, messageId: string) {
    this.#where = where;
    this.#messageId = messageId;
    this.slots = new TextSlots({ ...where, header: deltaHeader, shared: true });
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

  ending(message: Message | undefined): Message | undefined {
    if (message !== undefined) return message;
    const text = this.slots.all.map(({ said }) => said.text).join('');
    return text === '' ? undefined : { messageId: this.#messageId, role: 'ROLE_AGENT', parts: [{ text }] };
  }

  whole(message: Message): Message {
    return message;
  }
}

function deltaHeader(index: number): LaneArtifact {
  return { id: index === 0 ? DELTA_ID : `${DELTA_ID}:${index + 1}`, transitory: true, name: DELTA_NAME };
}

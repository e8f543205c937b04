import type { Message } from '@hopline/a2a';
import type { LaneArtifact } from '@hopline/events';
import type { AgentArtifacts } from './agent-artifacts.ts';
import { type AgentText, type ArtifactChunk, isTextOnly, type MessageRelation, type TextSink } from './agent-text.ts';
import type { LaneWriter } from './lane-writer.ts';
import { TextStreams } from './text-streams.ts';

type PassThroughTextOptions = {
  lanes: LaneWriter;
  lane: string;
  artifact: LaneArtifact;
  artifacts: AgentArtifacts;
  /** Id of the message that is made from the text; absent if the text's artifact stays in the task. */
  messageId?: string;
};

/**
 * Passes on the agent's own events: its artifacts as artifacts, its messages as messages. Any other text becomes one artifact per stream.
 *
 * Transitory text is removed when the task ends, and a message remains: the agent's own or, if it sent none, one with all the text (S1-24).
 * Consecutive streams share one artifact (S1-26). Concurrent streams have an artifact each, and the first of these has the fixed id
 * (S1-25).
 */
export class PassThroughText implements AgentText {
  readonly streams: TextStreams;
  readonly #artifacts: AgentArtifacts;
  readonly #messageId: string | undefined;

  constructor({ lanes, lane, artifact, artifacts, messageId }: PassThroughTextOptions) {
    const { id } = artifact;
    const header = (index: number) => (id === undefined || index === 0 ? artifact : { ...artifact, id: `${id}:${index + 1}` });
    this.streams = new TextStreams({ lanes, lane, header, shared: messageId !== undefined });
    this.#artifacts = artifacts;
    this.#messageId = messageId;
  }

  get sink(): TextSink {
    return this.streams;
  }

  artifact(chunk: ArtifactChunk): void {
    this.#artifacts.take(chunk);
  }

  ending(message: Message | undefined, standing: MessageRelation | undefined): Message | undefined {
    if (this.#messageId !== undefined) return message ?? this.#messageOfText(this.#messageId);
    // The message does not repeat an artifact's text (S2-2), but its other parts are still shown.
    return standing === 'repeats' && message !== undefined && isTextOnly(message) ? undefined : message;
  }

  wholeAnswer(message: Message): Message {
    return message;
  }

  #messageOfText(messageId: string): Message | undefined {
    const text = this.streams.all.map(({ content }) => content.text).join('');
    return text === '' ? undefined : { messageId, role: 'ROLE_AGENT', parts: [{ text }] };
  }
}

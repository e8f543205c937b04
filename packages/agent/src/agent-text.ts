import type { Message } from '@hopline/a2a';
import type { AgentEvent } from './agent.ts';
import type { TextStreams } from './text-streams.ts';

export type ArtifactChunk = Omit<Extract<AgentEvent, { type: 'artifact' }>, 'type'>;

/** How the message of `done` relates to the text before it (`AgentEvent`). */
export type MessageRelation = 'repeats' | 'replaces';

export type TextSink = Pick<TextStreams, 'token' | 'snapshot'>;

/** Turns the text and the artifacts of an agent into lanes: `AnswerText` or `PassThroughText`, by the call's presentation. */
export interface AgentText {
  readonly streams: TextStreams;
  /** Receives the tokens and snapshots. It is `streams` itself, unless the agent repeats its text. */
  readonly sink: TextSink;
  artifact(chunk: ArtifactChunk): void;
  /** Takes the message of a successful end, if there is one. Returns the message that must still be shown. */
  ending(message: Message | undefined, standing: MessageRelation | undefined): Message | undefined;
  /** Takes a message that is the whole answer. Returns it if it must still be shown. */
  wholeAnswer(message: Message): Message | undefined;
  /** Answer text that the client does not see; absent if all of it is forwarded. */
  readonly withheld?: string | undefined;
}

export function isTextOnly({ parts }: Message): boolean {
  return parts.every(part => part.text !== undefined);
}

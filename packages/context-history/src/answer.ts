import { type Artifact, type Message, type Part, textOf } from '@hopline/a2a';
import { kindOfArtifact } from '@hopline/profiles';

/** The text that a client has received at the end of a turn. */
export type TurnOutput = {
  /** In the order in which they were opened. */
  artifacts: readonly Artifact[];
  /** Message of the turn's last status. */
  message: Message | undefined;
};

/** The answer of a turn as text parts; empty when the turn has no text. */
export function answerOf({ artifacts, message }: TurnOutput): Part[] {
  const texts = answerTexts(artifacts);
  const lastText = message === undefined ? '' : textOf(message.parts);
  // Many agents repeat the streamed text in their last message.
  if (lastText !== '' && !texts.join('').endsWith(lastText)) texts.push(lastText);
  return texts.map(text => ({ text }));
}

function answerTexts(artifacts: readonly Artifact[]): string[] {
  const texts = artifacts.map(artifact => ({ kind: kindOfArtifact(artifact), text: textOf(artifact.parts) }));
  // An artifact that repeats the whole answer (S0-20, C-25).
  const result = texts.findLast(({ kind, text }) => kind === 'result' && text !== '');
  if (result !== undefined) return [result.text];
  // Each segment is one artifact; segments are joined without separators (C-28).
  const streamed = texts.filter(({ kind }) => kind === 'answer').map(({ text }) => text);
  // Plans, notices and progress are not part of the answer (S2-34).
  const others = texts.filter(({ kind }) => kind === undefined).map(({ text }) => text);
  return [streamed.join(''), ...others].filter(text => text !== '');
}

import type { Artifact, Message, Part } from '@hopline/a2a';
import { artifactKind } from '@hopline/profiles';

/** What a turn left in front of its client. */
export type Left = {
  /** In order of opening. */
  artifacts: readonly Artifact[];
  /** Of the turn's last status that had one. */
  message: Message | undefined;
};

/** The answer of a turn as text parts; none when nothing was said. */
export function answerOf({ artifacts, message }: Left): Part[] {
  const texts = saidIn(artifacts);
  const told = message === undefined ? '' : textOf(message.parts);
  // Agents in the field end with the text they have streamed.
  if (told !== '' && !texts.join('').endsWith(told)) texts.push(told);
  return texts.map(text => ({ text }));
}

function saidIn(artifacts: readonly Artifact[]): string[] {
  const texts = artifacts.map(({ name, parts }) => ({ kind: artifactKind(name), text: textOf(parts) }));
  // The whole answer once more (S0-20, C-25).
  const result = texts.findLast(({ kind, text }) => kind === 'result' && text !== '');
  if (result !== undefined) return [result.text];
  // One artifact per segment, nothing inserted between them (C-28).
  const streamed = texts.filter(({ kind }) => kind === 'answer').map(({ text }) => text);
  // Plans, notices and progress are not part of the answer (S2-34).
  const others = texts.filter(({ kind }) => kind === undefined).map(({ text }) => text);
  return [streamed.join(''), ...others].filter(text => text !== '');
}

function textOf(parts: readonly Part[]): string {
  return parts.map(part => part.text ?? '').join('');
}

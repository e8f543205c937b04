import { type Artifact, type Message, type Part, textOf } from '@hopline/a2a';

/** Artifacts that repeat the whole answer (S0-20, C-25). */
const WHOLE: ReadonlySet<string | undefined> = new Set(['partial_result', 'final_result']);
/** The streamed answer, one artifact per segment; the segments join without separators (C-28). */
const STREAMED = 'streaming_result';
/** Artifacts that are not part of the answer: tool notices, the plan, progress (S2-34). */
const BESIDE = /^(tool_notification|execution_plan|progress$)/;

/** What a client has received at the end of a turn. */
export type TurnOutput = {
  /** In order of opening. */
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
  const whole = artifacts.findLast(({ name, parts }) => WHOLE.has(name) && textOf(parts) !== '');
  if (whole !== undefined) return [textOf(whole.parts)];
  const streamed = artifacts.filter(({ name }) => name === STREAMED).map(({ parts }) => textOf(parts));
  const others = artifacts.filter(({ name }) => name !== STREAMED && !BESIDE.test(name ?? '')).map(({ parts }) => textOf(parts));
  return [streamed.join(''), ...others].filter(text => text !== '');
}

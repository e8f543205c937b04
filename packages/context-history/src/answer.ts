import { type Artifact, type Message, type Part, textOf } from '@hopline/a2a';

/** Artifacts that hold the whole answer once more (S0-20, C-25). */
const WHOLE: ReadonlySet<string | undefined> = new Set(['partial_result', 'final_result']);
/** The streamed answer, in one artifact per segment, nothing inserted between them (C-28). */
const STREAMED = 'streaming_result';
/** What is told beside the answer: notices of tools, the plan, progress (S2-34). */
const BESIDE = /^(tool_notification|execution_plan|progress$)/;

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
  const whole = artifacts.findLast(({ name, parts }) => WHOLE.has(name) && textOf(parts) !== '');
  if (whole !== undefined) return [textOf(whole.parts)];
  const streamed = artifacts.filter(({ name }) => name === STREAMED).map(({ parts }) => textOf(parts));
  const others = artifacts.filter(({ name }) => name !== STREAMED && !BESIDE.test(name ?? '')).map(({ parts }) => textOf(parts));
  return [streamed.join(''), ...others].filter(text => text !== '');
}

import { createHash } from 'node:crypto';
import { cutIndex, isInterrupted, type Message, type Part } from '@hopline/a2a';
import type { ChatMessage } from '@hopline/chat-model';
import type { ChosenCall, ModelStep, Read } from './model-step.ts';
import { ANSWER_NAME, type TurnView, textOf } from './turn-view.ts';

/** Text of earlier messages that goes to the model, UTF-16 units; of more, the oldest is left out. */
const HISTORY_UNITS_MAX = 64 * 1024;
/** Of one agent's text that the model reads, UTF-16 units; what is more is cut, and the model is told. */
export const RESULT_UNITS_MAX = 512 * 1024;

/** What the model reads: its orders, what was said before, its own steps, and what came of its calls. The same from the same log, whoever asks. */
export function conversation(
  system: string,
  said: readonly Message[],
  view: TurnView,
  steps: readonly ModelStep[],
): ChatMessage[] {
  const question = view.messageOf(view.begunIn);
  const messages: ChatMessage[] = [{ role: 'system', text: system }, ...history(question ? [...said, question] : said)];
  for (const { text, calls } of steps) {
    messages.push({ role: 'assistant', text, calls });
    for (const call of calls) messages.push({ role: 'tool', call, text: resultOf(call, view) });
  }
  return messages;
}

function history(said: readonly Message[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let units = 0;
  for (const [back, { role, parts }] of said.toReversed().entries()) {
    const text = parts.map(wordsOf).join('');
    units += text.length;
    // The newest is the question itself: ingress has bounded it.
    if (back > 0 && units > HISTORY_UNITS_MAX) break;
    messages.unshift(role === 'ROLE_USER' ? { role: 'user', text } : { role: 'assistant', text, calls: [] });
  }
  return messages;
}

function wordsOf(part: Part): string {
  if (part.text !== undefined) return part.text;
  if (part.data !== undefined) return JSON.stringify(part.data);
  return `[file ${part.filename ?? part.url ?? ''}; agents that are called get it]`;
}

function resultOf(chosen: ChosenCall, view: TurnView): string {
  if ('finish' in chosen) return 'ok';
  if ('refused' in chosen) return chosen.refused;
  return outcomeOf(chosen.call, view);
}

/** All an agent said in a call: its text, its data, what it asked and was answered, and how it ended. */
function outcomeOf(call: string, view: TurnView): string {
  const ended = view.ended(call);
  const held = ended?.withheldText === undefined ? '' : '[the user has not seen this answer]';
  const lines = [held, cut(answerOf(call, view)), ...dataOf(call, view)].filter(line => line !== '');
  const continued = view.continued(call);
  if (continued !== undefined) {
    lines.push(
      `[it asked: ${wordsIn(continued.question)}]`,
      `[the user answered: ${wordsIn(continued.answer)}]`,
      outcomeOf(continued.call, view),
    );
  } else if (ended === undefined) {
    lines.push('[the call was stopped]');
  } else if (!isInterrupted(ended.state)) {
    // The message of a good end is what is left beside the text (S2-2).
    if (ended.message !== undefined) lines.push(wordsIn(ended.message));
    if (ended.state !== 'TASK_STATE_COMPLETED') lines.push(`[the agent failed: ${ended.reason ?? 'no reason given'}]`);
  }
  return lines.join('\n');
}

const wordsIn = (message: Message | undefined) => (message?.parts ?? []).map(wordsOf).join('');

/** The agent's answer text, every character once. */
function answerOf(call: string, view: TurnView): string {
  const forwarded = view.artifactsOf(call).filter(({ name }) => name === ANSWER_NAME);
  return forwarded.map(textOf).join('') + (view.ended(call)?.withheldText ?? '');
}

function dataOf(call: string, view: TurnView): string[] {
  const parts = view.artifactsOf(call).flatMap(artifact => artifact.parts);
  return parts.flatMap(part => (part.data === undefined ? [] : [JSON.stringify(part.data)]));
}

function cut(text: string): string {
  if (text.length <= RESULT_UNITS_MAX) return text;
  const kept = text.slice(0, cutIndex(text, RESULT_UNITS_MAX));
  return `${kept}\n[cut: ${text.length - kept.length} more characters]`;
}

/** What the model has read of the calls of a step: recorded with the next one, so that the log shows that it was all of it, once (S2-11). */
export function readOf(step: ModelStep | undefined, view: TurnView): Read[] {
  const calls = (step?.calls ?? []).flatMap(chosen => ('call' in chosen ? [chosen.call] : []));
  return calls
    .flatMap(call => [call, view.continued(call)?.call ?? []].flat())
    .map(call => {
      const text = answerOf(call, view);
      return { call, sha256: createHash('sha256').update(text).digest('hex'), units: text.length };
    });
}

import { createHash } from 'node:crypto';
import { cutIndex, isInterrupted, type Message, type Part } from '@hopline/a2a';
import type { ChatMessage } from '@hopline/chat-model';
import type { ChosenCall, ModelStep, Read } from './model-step.ts';
import type { TurnView } from './turn-view.ts';

/** Text of earlier messages that goes to the model, UTF-16 units; the oldest messages beyond it are left out. */
const HISTORY_UNITS_MAX = 64 * 1024;
/** Text of one agent that the model reads, UTF-16 units; longer text is cut with a mark. */
export const RESULT_UNITS_MAX = 512 * 1024;

/** The model's input: system prompt, earlier messages, its own steps, and the results of its calls. The same log gives the same input. */
export function conversation(
  system: string,
  earlier: readonly Message[],
  view: TurnView,
  steps: readonly ModelStep[],
): ChatMessage[] {
  const question = view.messageOf(view.requestTurn);
  const messages: ChatMessage[] = [{ role: 'system', text: system }, ...history(question ? [...earlier, question] : earlier)];
  for (const { text, calls } of steps) {
    messages.push({ role: 'assistant', text, calls });
    for (const call of calls) messages.push({ role: 'tool', call, text: resultOf(call, view) });
  }
  return messages;
}

function history(earlier: readonly Message[]): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let units = 0;
  for (const [back, { role, parts }] of earlier.toReversed().entries()) {
    const text = parts.map(wordsOf).join('');
    units += text.length;
    // The newest message is the question itself: ingress has bounded it.
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

/** The result of a call: text, data, the agent's question with the client's answer, and how the call ended. */
function outcomeOf(call: string, view: TurnView): string {
  const ended = view.ended(call);
  const withheld = ended?.withheldText === undefined ? '' : '[the user has not seen this answer]';
  const lines = [withheld, cut(view.answerOf(call)), ...dataOf(call, view)].filter(line => line !== '');
  const continuation = view.continuation(call);
  if (continuation !== undefined) {
    lines.push(
      `[it asked: ${wordsIn(continuation.question)}]`,
      `[the user answered: ${wordsIn(continuation.answer)}]`,
      outcomeOf(continuation.call, view),
    );
  } else if (ended === undefined) {
    lines.push('[the call was stopped]');
  } else if (!isInterrupted(ended.state)) {
    // The message of a completed call holds only what its text does not (S2-2).
    if (ended.message !== undefined) lines.push(wordsIn(ended.message));
    if (ended.state !== 'TASK_STATE_COMPLETED') lines.push(`[the agent failed: ${ended.reason ?? 'no reason given'}]`);
  }
  return lines.join('\n');
}

const wordsIn = (message: Message | undefined) => (message?.parts ?? []).map(wordsOf).join('');

function dataOf(call: string, view: TurnView): string[] {
  const parts = view.artifactsOf(call).flatMap(artifact => artifact.parts);
  return parts.flatMap(part => (part.data === undefined ? [] : [JSON.stringify(part.data)]));
}

function cut(text: string): string {
  if (text.length <= RESULT_UNITS_MAX) return text;
  const kept = text.slice(0, cutIndex(text, RESULT_UNITS_MAX));
  return `${kept}\n[cut: ${text.length - kept.length} more characters]`;
}

/** What the model has read of the calls of a step. It is recorded with the next step: proof that the model read all of it, once (S2-11). */
export function readOf(step: ModelStep | undefined, view: TurnView): Read[] {
  const calls = (step?.calls ?? []).flatMap(chosen => ('call' in chosen ? [chosen.call] : []));
  return calls
    .flatMap(call => [call, view.continuation(call)?.call ?? []].flat())
    .map(call => {
      const text = view.answerOf(call);
      return { call, sha256: createHash('sha256').update(text).digest('hex'), units: text.length };
    });
}

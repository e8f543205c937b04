import { createHash } from 'node:crypto';
import { cutIndex, isInterrupted, type Message } from '@hopline/a2a';
import type { ChatMessage } from '@hopline/chat-model';
import { promptMessages, promptText } from '@hopline/chat-model/prompt-messages';
import type { ChosenCall, ModelStep, Read } from './model-step.ts';
import type { TurnView } from './turn-view.ts';

const FILE_NOTE = '; passed to the agents that you call';
/** UTF-16 units of one agent's text that the model reads, and separately of its data. Longer text is cut, with a mark. */
export const RESULT_UNITS_MAX = 512 * 1024;

/** The model's input: system prompt, earlier messages, its own steps, and the results of its calls. The same log gives the same input. */
export function conversation(
  system: string,
  earlier: readonly Message[],
  view: TurnView,
  steps: readonly ModelStep[],
): ChatMessage[] {
  const message = view.messageOf(view.requestTurn);
  const messages = promptMessages({ system, history: earlier, message, fileNote: FILE_NOTE });
  for (const { text, calls } of steps) {
    messages.push({ role: 'assistant', text, calls });
    for (const call of calls) messages.push({ role: 'tool', call, text: resultOf(call, view) });
  }
  return messages;
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
  const lines = [withheld, cut(view.answerOf(call)), cut(dataOf(call, view))].filter(line => line !== '');
  const continuation = view.continuation(call);
  if (continuation !== undefined) {
    lines.push(
      `[the agent asked: ${wordsIn(continuation.question)}]`,
      `[the user answered: ${wordsIn(continuation.answer)}]`,
      outcomeOf(continuation.call, view),
    );
  } else if (ended === undefined) {
    lines.push('[the call was stopped]');
  } else if (!isInterrupted(ended.state)) {
    // The message of a completed call contains only the part that its text lacks (S2-2).
    if (ended.message !== undefined) lines.push(wordsIn(ended.message));
    if (ended.state !== 'TASK_STATE_COMPLETED') lines.push(`[the agent failed: ${ended.reason ?? 'no reason given'}]`);
  }
  return lines.join('\n');
}

const wordsIn = (message: Message | undefined) => promptText(message?.parts ?? [], FILE_NOTE);

function dataOf(call: string, view: TurnView): string {
  const parts = view.artifactsOf(call).flatMap(artifact => artifact.parts);
  return parts.flatMap(part => (part.data === undefined ? [] : [JSON.stringify(part.data)])).join('\n');
}

function cut(text: string): string {
  if (text.length <= RESULT_UNITS_MAX) return text;
  const kept = text.slice(0, cutIndex(text, RESULT_UNITS_MAX));
  return `${kept}\n[cut: ${text.length - kept.length} more characters]`;
}

/**
 * The text that the model has read from the calls of a step. It is recorded with the next step, as proof that the model has read the whole
 * text once (S2-11).
 */
export function readOf(step: ModelStep | undefined, view: TurnView): Read[] {
  const calls = (step?.calls ?? []).flatMap(chosen => ('call' in chosen ? [chosen.call] : []));
  return calls
    .flatMap(call => [call, view.continuation(call)?.call ?? []].flat())
    .map(call => {
      const text = view.answerOf(call);
      return { call, sha256: createHash('sha256').update(text).digest('hex'), units: text.length };
    });
}

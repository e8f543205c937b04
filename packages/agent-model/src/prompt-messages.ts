import type { Message, Part } from '@hopline/a2a';
import type { ChatMessage } from '@hopline/chat-model';
import { HISTORY_UNITS_MAX } from './limits.ts';

/** The messages of a prompt: system prompt, history of the context, and the message of the turn. */
export function promptMessages(system: string | undefined, history: readonly Message[], message: Message): ChatMessage[] {
  const messages: ChatMessage[] = system === undefined ? [] : [{ role: 'system', text: system }];
  for (const earlier of newest(history)) {
    const text = textOf(earlier.parts);
    if (earlier.role === 'ROLE_USER') messages.push({ role: 'user', text });
    else messages.push({ role: 'assistant', text, calls: [] });
  }
  messages.push({ role: 'user', text: textOf(message.parts) });
  return messages;
}

/** Returns the newest messages with text that fit into HISTORY_UNITS_MAX, in their order. */
function newest(history: readonly Message[]): Message[] {
  const kept: Message[] = [];
  let units = 0;
  for (const message of history.toReversed()) {
    const { length } = textOf(message.parts);
    if (length === 0) continue;
    units += length;
    if (units > HISTORY_UNITS_MAX) break;
    kept.unshift(message);
  }
  return kept;
}

/** Joins text unchanged, data as JSON, and a note for each file. */
function textOf(parts: readonly Part[]): string {
  return parts.map(textOfPart).join('');
}

function textOfPart(part: Part): string {
  if (part.text !== undefined) return part.text;
  if (part.data !== undefined) return JSON.stringify(part.data);
  return `[file ${part.filename ?? part.url ?? ''} ${part.mediaType ?? ''}]`;
}

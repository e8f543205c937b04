import type { Message, Part } from '@hopline/a2a';
import type { ChatMessage } from '@hopline/chat-model';
import { HISTORY_UNITS_MAX } from './limits.ts';

/** What a model is asked in a turn: who it is, what was said before in the context, and the message. */
export function conversation(system: string | undefined, history: readonly Message[], message: Message): ChatMessage[] {
  const messages: ChatMessage[] = system === undefined ? [] : [{ role: 'system', text: system }];
  for (const said of newest(history)) {
    const text = textOf(said.parts);
    if (said.role === 'ROLE_USER') messages.push({ role: 'user', text });
    else messages.push({ role: 'assistant', text, calls: [] });
  }
  messages.push({ role: 'user', text: textOf(message.parts) });
  return messages;
}

/** The newest messages whose text fits into HISTORY_UNITS_MAX, in their order; those without text are left out. */
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

/** Text as it is, data as JSON; of a file the model is told that it is there. */
function textOf(parts: readonly Part[]): string {
  return parts.map(textOfPart).join('');
}

function textOfPart(part: Part): string {
  if (part.text !== undefined) return part.text;
  if (part.data !== undefined) return JSON.stringify(part.data);
  return `[file ${part.filename ?? part.url ?? ''} ${part.mediaType ?? ''}]`;
}

import type { Message, Part } from '@hopline/a2a';
import type { ChatMessage } from './chat.ts';

/** Maximum UTF-16 units of earlier messages in a prompt. The oldest messages are left out. */
export const HISTORY_UNITS_MAX = 64 * 1024;

type PromptParts = {
  system: string | undefined;
  /** Earlier messages of the context, oldest first. */
  history: readonly Message[];
  /** The message of the turn. It is never left out, because ingress has bounded it. */
  message: Message | undefined;
  /** Added to the note that replaces a file, e.g. what happens to the file. */
  fileNote?: string;
};

/** The beginning of a prompt: system prompt, the newest history that fits, and the message of the turn. */
export function promptMessages({ system, history, message, fileNote = '' }: PromptParts): ChatMessage[] {
  const messages: ChatMessage[] = system === undefined ? [] : [{ role: 'system', text: system }];
  for (const { role, text } of newest(history, fileNote)) {
    messages.push(role === 'ROLE_USER' ? { role: 'user', text } : { role: 'assistant', text, calls: [] });
  }
  if (message !== undefined) messages.push({ role: 'user', text: promptText(message.parts, fileNote) });
  return messages;
}

/** Joins text unchanged, data as JSON, and a note for each file. */
export function promptText(parts: readonly Part[], fileNote = ''): string {
  return parts.map(part => promptTextOf(part, fileNote)).join('');
}

function promptTextOf({ text, data, filename, url, mediaType }: Part, fileNote: string): string {
  if (text !== undefined) return text;
  if (data !== undefined) return JSON.stringify(data);
  return `[file ${[filename ?? url, mediaType].filter(Boolean).join(' ')}${fileNote}]`;
}

/** The newest messages with text that fit into HISTORY_UNITS_MAX, in their order. */
function newest(history: readonly Message[], fileNote: string): { role: Message['role']; text: string }[] {
  const kept: { role: Message['role']; text: string }[] = [];
  let units = 0;
  for (const { role, parts } of history.toReversed()) {
    const text = promptText(parts, fileNote);
    if (text === '') continue;
    units += text.length;
    if (units > HISTORY_UNITS_MAX) break;
    kept.unshift({ role, text });
  }
  return kept;
}

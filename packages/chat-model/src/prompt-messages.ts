import type { Message, Part } from '@hopline/a2a';
import type { ChatFile, ChatMessage } from './chat.ts';

/** Maximum UTF-16 units of earlier messages in a prompt. The oldest messages are left out. */
export const HISTORY_UNITS_MAX = 64 * 1024;

/** Media types of the files that a request can contain. Models differ in which of them they read. */
export const MODEL_MEDIA: readonly string[] = ['image/*', 'audio/wav', 'audio/mpeg', 'audio/mp3', 'application/pdf', 'text/*'];

type PromptParts = {
  system: string | undefined;
  /** Earlier messages of the context, oldest first. */
  history: readonly Message[];
  /** The message of the turn. It is never left out, because ingress has bounded it. */
  message: Message | undefined;
  /** Added to the note that replaces a file, e.g. what happens to the file. */
  fileNote?: string;
  /** Media types of users' files that the prompt contains in addition to their notes; `image/*` is every image. Default: none. */
  media?: readonly string[];
};

/** The beginning of a prompt: system prompt, the newest history that fits, and the message of the turn. */
export function promptMessages({ system, history, message, fileNote = '', media = [] }: PromptParts): ChatMessage[] {
  const messages: ChatMessage[] = system === undefined ? [] : [{ role: 'system', text: system }];
  messages.push(...newest(history, fileNote, media));
  if (message !== undefined) messages.push(promptMessage({ ...message, role: 'ROLE_USER' }, { fileNote, media }));
  return messages;
}

/** One message of a conversation, in the form of a prompt. */
export function promptMessage(
  { role, parts }: Pick<Message, 'role' | 'parts'>,
  { fileNote = '', media = [] }: Pick<PromptParts, 'fileNote' | 'media'>,
): Exclude<ChatMessage, { role: 'system' | 'tool' }> {
  const text = promptText(parts, fileNote);
  if (role !== 'ROLE_USER') return { role: 'assistant', text, calls: [] };
  const files = parts.flatMap(part => fileOf(part, media));
  return { role: 'user', text, ...(files.length > 0 && { files }) };
}

/** A file that a request can contain and the model reads. */
function fileOf({ raw, url, filename, mediaType = '' }: Part, media: readonly string[]): ChatFile[] {
  const type = mediaType.split(';')[0]!.trim().toLowerCase();
  const isIn = (types: readonly string[]) => types.includes(type) || types.includes(`${type.split('/')[0]}/*`);
  if (type === '' || !isIn(MODEL_MEDIA) || !isIn(media)) return [];
  const named = { mediaType: type, ...(filename !== undefined && { filename }) };
  if (raw !== undefined) return [{ ...named, raw }];
  // Providers read addresses of images only.
  return url !== undefined && type.startsWith('image/') && URL.canParse(url) ? [{ ...named, url }] : [];
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

/** The newest messages with text that fit into HISTORY_UNITS_MAX, in their order. Files that do not fit have only their notes. */
function newest(history: readonly Message[], fileNote: string, media: readonly string[]): ChatMessage[] {
  const kept: ChatMessage[] = [];
  let units = 0;
  for (const one of history.toReversed()) {
    const message = promptMessage(one, { fileNote, media });
    if (message.text === '') continue;
    units += message.text.length;
    if (units > HISTORY_UNITS_MAX) break;
    const { files = [] } = message.role === 'user' ? message : {};
    const fileUnits = files.reduce((sum, file) => sum + ('raw' in file ? file.raw.length : 0), 0);
    const fits = units + fileUnits <= HISTORY_UNITS_MAX;
    if (fits) units += fileUnits;
    kept.unshift(fits || files.length === 0 ? message : { role: 'user', text: message.text });
  }
  return kept;
}

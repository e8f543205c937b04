import { isObject, type JsonObject, type Part } from '@hopline/a2a';
import { OpenAIError } from './openai-error.ts';

/** A message of a conversation, as both APIs send them. */
type ChatMessage = { role: string; parts: Part[] };

/**
 * The parts of the message for the agent. `isContinued`: the agent reads the earlier messages from the log, so only the messages after the last
 * answer are sent. Otherwise the earlier messages are a text before the question.
 */
export function questionOf(messages: unknown, param: string, { isContinued }: { isContinued: boolean }): Part[] {
  if (!Array.isArray(messages)) throw new OpenAIError(`${param} must be an array of messages`, { param });
  const known = messages.flatMap((message: unknown, index) => messageOf(message, `${param}[${index}]`));
  const last = known.at(-1);
  if (last?.role !== 'user')
    throw new OpenAIError(`the last message of ${param} must have the role user, because agents run their own tools`, { param });
  if (last.parts.length === 0) throw new OpenAIError(`the last message of ${param} has no content`, { param });
  const earlier = known.slice(0, -1);
  const answered = earlier.findLastIndex(({ role }) => role === 'assistant');
  const shown = isContinued ? earlier.slice(answered + 1) : earlier;
  return [...shownBefore(shown), ...last.parts];
}

/** Instructions of the client, such as `instructions` of a response, as text before the question. */
export function instructionsPart(text: string): Part {
  return { text: `Instructions:\n${text}\n\n` };
}

/** Files of earlier messages are sent as well; the text keeps their place. */
function shownBefore(messages: readonly ChatMessage[]): Part[] {
  if (messages.length === 0) return [];
  const texts = messages.map(({ role, parts }) => `${role}: ${parts.map(part => part.text ?? '[file]').join('')}`);
  const files = messages.flatMap(({ parts }) => parts.filter(part => part.text === undefined));
  return [{ text: `Earlier messages of this conversation:\n\n${texts.join('\n\n')}\n\nAnswer this message:\n\n` }, ...files];
}

const ROLES = ['user', 'assistant', 'system', 'developer', 'tool', 'function'];

function messageOf(message: unknown, path: string): ChatMessage[] {
  if (!isObject(message)) throw new OpenAIError(`${path} must be an object`, { param: path });
  const { type = 'message', role, content } = message;
  // Items of earlier responses that only the server reads, such as reasoning and calls.
  if (type !== 'message') {
    if (type === 'function_call_output') throw new OpenAIError(`${path}: agents run their own tools`, { param: path });
    return [];
  }
  if (typeof role !== 'string' || !ROLES.includes(role))
    throw new OpenAIError(`${path}.role must be one of ${ROLES.join(', ')}`, { param: `${path}.role` });
  if (content === undefined || content === null) return [];
  if (typeof content === 'string') return content === '' ? [] : [{ role, parts: [{ text: content }] }];
  if (!Array.isArray(content))
    throw new OpenAIError(`${path}.content must be a string or an array`, { param: `${path}.content` });
  return [{ role, parts: content.map((part: unknown, index) => partOf(part, `${path}.content[${index}]`)) }];
}

function partOf(part: unknown, path: string): Part {
  if (!isObject(part)) throw new OpenAIError(`${path} must be an object`, { param: path });
  switch (part.type) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return { text: stringOf(part.text, `${path}.text`) };
    case 'refusal':
      return { text: stringOf(part.refusal, `${path}.refusal`) };
    case 'image_url': {
      const { url } = isObject(part.image_url) ? part.image_url : {};
      return urlPart(stringOf(url, `${path}.image_url.url`), {}, `${path}.image_url.url`);
    }
    case 'input_image':
      return urlPart(stringOf(part.image_url, `${path}.image_url`), {}, `${path}.image_url`);
    case 'input_audio': {
      const { data, format } = isObject(part.input_audio) ? part.input_audio : {};
      const raw = stringOf(data, `${path}.input_audio.data`);
      return { raw, mediaType: `audio/${format === 'mp3' ? 'mpeg' : String(format)}` };
    }
    case 'file':
      return filePart(isObject(part.file) ? part.file : {}, `${path}.file`);
    case 'input_file':
      return filePart(part, path);
    default:
      throw new OpenAIError(`${path}.type is not supported`, { param: `${path}.type` });
  }
}

function filePart({ file_data: data, file_url: url, filename }: JsonObject, path: string): Part {
  const named = typeof filename === 'string' ? { filename } : {};
  if (typeof data === 'string') return urlPart(data, named, `${path}.file_data`);
  if (typeof url === 'string') return urlPart(url, named, `${path}.file_url`);
  throw new OpenAIError(`${path} must have file_data or file_url, because this server stores no files`, { param: path });
}

function stringOf(value: unknown, path: string): string {
  if (typeof value !== 'string') throw new OpenAIError(`${path} must be a string`, { param: path });
  return value;
}

const DATA_URL = /^data:([^,;]*)(?:;[^,;]*)*;base64,/i;

function urlPart(url: string, named: { filename?: string }, path: string): Part {
  const head = DATA_URL.exec(url);
  if (head !== null) return { raw: url.slice(head[0].length), ...(head[1] !== '' && { mediaType: head[1]! }), ...named };
  if (/^https?:\/\//i.test(url)) return { url, ...named };
  throw new OpenAIError(`${path} must be a URL of http or https, or a data URL in base64`, { param: path });
}

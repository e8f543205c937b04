import { isObject } from '@hopline/a2a';

const TITLE_WORDS_MAX = 6;
const TITLE_CHARS_MAX = 60;

/** The prompts name the member of the JSON that they want. */
const WANTED = /"(title|tags|follow_ups|queries|text)"\s*:/;
const [USER, ASSISTANT] = ['\nUSER: ', '\nASSISTANT: '];
const [HISTORY_BEGIN, HISTORY_END] = ['<chat_history>', '</chat_history>'];

/**
 * The answer to a request by which a chat page asks its model about a chat: for a title, tags, follow-up questions, search queries, or the
 * rest of a sentence. Open WebUI sends such requests after the first answer, with the prompt as the message of the user, below `### Task:`
 * and with the messages in `<chat_history>`. To an agent each would be a task in the same conversation, with an answer that no page can
 * use. So the title is made from the first question, and the rest is empty. Undefined for other requests.
 */
export function sideAnswerOf(body: unknown): string | undefined {
  if (!isObject(body) || body.stream === true || !Array.isArray(body.messages)) return undefined;
  const asked = body.messages.filter((message: unknown) => !isObject(message) || message.role !== 'system');
  const [message]: unknown[] = asked;
  if (asked.length !== 1 || !isObject(message) || message.role !== 'user') return undefined;
  const { content } = message;
  if (typeof content !== 'string' || !content.startsWith('### Task:')) return undefined;
  const begin = content.indexOf(HISTORY_BEGIN);
  const end = content.lastIndexOf(HISTORY_END);
  if (begin < 0 || end < begin) return undefined;
  const prompt = content.slice(0, begin) + content.slice(end + HISTORY_END.length);
  const [, wanted] = WANTED.exec(prompt) ?? [];
  if (wanted === undefined) return undefined;
  if (wanted === 'title') return JSON.stringify({ title: titleOf(content.slice(begin + HISTORY_BEGIN.length, end)) });
  return JSON.stringify({ [wanted]: wanted === 'text' ? '' : [] });
}

/** The first words of the first question. */
function titleOf(history: string): string {
  const chat = `\n${history.trim()}`;
  const begin = chat.indexOf(USER);
  const end = chat.indexOf(ASSISTANT, begin);
  const question = begin < 0 ? '' : chat.slice(begin + USER.length, end < 0 ? undefined : end);
  const words = question.trim().split(/\s+/, TITLE_WORDS_MAX + 1);
  const first = words.slice(0, TITLE_WORDS_MAX).join(' ');
  const isWhole = words.length <= TITLE_WORDS_MAX && first.length <= TITLE_CHARS_MAX;
  return isWhole ? first : `${[...first].slice(0, TITLE_CHARS_MAX).join('')} …`;
}

/** A completion without a task. */
export function sideCompletion({ model, content, id, now }: { model: string; content: string; id: string; now: number }): object {
  const message = { role: 'assistant', content, refusal: null };
  return {
    ...{ id: `chatcmpl-${id}`, object: 'chat.completion', created: Math.floor(now / 1_000), model },
    choices: [{ index: 0, message, finish_reason: 'stop', logprobs: null }],
  };
}

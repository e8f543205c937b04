import { isObject, type Message, type Part, textOf } from '@hopline/a2a';

/**
 * The call of Google ADK, or the interrupt of Strands, that a question waits for. Their servers take no text as the answer: to ADK it begins a
 * new turn, and Strands refuses it.
 */
export type OpenQuestion = { call: { id: string; name: string } } | { interruptId: string };

/** Calls of ADK whose results have a form of their own. */
const NOT_TEXT = ['adk_request_confirmation', 'adk_request_credential'];
/** The text of a question without one. */
export const NO_TEXT = 'The agent waits for an answer.';

/** The call or interrupt that the answer must name. Undefined if text is the answer, or if the message asks for several answers. */
export function openQuestion({ parts }: Message): OpenQuestion | undefined {
  const open = parts.flatMap(questionsOf);
  return open.length === 1 ? open[0] : undefined;
}

function questionsOf({ data, metadata }: Part): OpenQuestion[] {
  if (!isObject(data)) return [];
  const { id, name, interrupts } = data;
  if (metadata?.adk_type === 'function_call' && metadata.adk_is_long_running === true)
    return typeof id === 'string' && typeof name === 'string' && !NOT_TEXT.includes(name) ? [{ call: { id, name } }] : [];
  if (!Array.isArray(interrupts)) return [];
  return interrupts.flatMap(one =>
    isObject(one) && typeof one.interruptId === 'string' ? [{ interruptId: one.interruptId }] : [],
  );
}

/** The message of a question with a text for people. A call of ADK has none; its `adk_request_input` has one in its arguments. */
export function withText(message: Message): Message {
  if (textOf(message.parts) !== '') return message;
  const texts = message.parts.flatMap(({ data }) => (isObject(data) && isObject(data.args) ? [data.args.message] : []));
  const text = texts.find(one => typeof one === 'string' && one !== '') ?? NO_TEXT;
  return { ...message, parts: [{ text: String(text) }, ...message.parts] };
}

/** The parts of an answer as the agent takes them. An answer that has other parts than text stays as it is. */
export function answerParts(parts: Part[], question: OpenQuestion | undefined): Part[] {
  if (question === undefined || parts.some(part => part.text === undefined)) return parts;
  const text = textOf(parts);
  if ('interruptId' in question) return [{ data: { interruptResponse: { interruptId: question.interruptId, response: text } } }];
  return [{ data: { ...question.call, response: { result: text } }, metadata: { adk_type: 'function_response' } }];
}

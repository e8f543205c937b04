import {
  type ApprovalRequest,
  approvalQuestion,
  approvalRequestParts,
  isObject,
  type JsonObject,
  type Message,
  type Part,
  readApprovalResponse,
  textOf,
} from '@hopline/a2a';

/**
 * The Google ADK call, or the Strands interrupt, that waits for the answer to a question. Their servers do not accept text as the answer:
 * for ADK it begins a new turn, and Strands refuses it. `approves`: the id of the call that an ADK confirmation asks about.
 */
export type OpenQuestion = { call: { id: string; name: string }; approves?: string } | { interruptId: string };

const CONFIRMATION = 'adk_request_confirmation';
/** Calls of ADK whose results have a form of their own. */
const NOT_TEXT = [CONFIRMATION, 'adk_request_credential'];
/** The hint of a confirmation if the tool gives none. It is for developers. */
const DEFAULT_HINT = /\bFunctionResponse\b/;
/** The text of a question without one. */
export const NO_TEXT = 'The agent waits for an answer.';

/** The call or interrupt that the answer must name. Undefined if text is the answer, or if the message asks for several answers. */
export function openQuestion({ parts }: Message): OpenQuestion | undefined {
  const open = parts.flatMap(questionsOf);
  return open.length === 1 ? open[0] : undefined;
}

function questionsOf(part: Part): OpenQuestion[] {
  const { data } = part;
  if (isOpenCall(part)) {
    const { id, name } = part.data;
    if (typeof id !== 'string' || typeof name !== 'string') return [];
    const approves = confirmationOf(part)?.request.callId;
    if (approves !== undefined) return [{ call: { id, name }, approves }];
    return NOT_TEXT.includes(name) ? [] : [{ call: { id, name } }];
  }
  if (!isObject(data) || !Array.isArray(data.interrupts)) return [];
  return data.interrupts.flatMap(one =>
    isObject(one) && typeof one.interruptId === 'string' ? [{ interruptId: one.interruptId }] : [],
  );
}

function isOpenCall(part: Part): part is Part & { data: JsonObject } {
  const { data, metadata } = part;
  return isObject(data) && metadata?.adk_type === 'function_call' && metadata.adk_is_long_running === true;
}

/** The call that a confirmation of ADK asks about. Undefined for other parts, and for a confirmation that expects more than a yes or no. */
function confirmationOf(part: Part): { request: ApprovalRequest; hint: string } | undefined {
  if (!isOpenCall(part)) return undefined;
  const { name, args } = part.data;
  if (name !== CONFIRMATION || !isObject(args) || !isObject(args.originalFunctionCall)) return undefined;
  const { id, name: tool, args: values = {} } = args.originalFunctionCall;
  const { hint, payload = null } = isObject(args.toolConfirmation) ? args.toolConfirmation : {};
  if (typeof id !== 'string' || id === '' || typeof tool !== 'string' || tool === '' || !isObject(values)) return undefined;
  if (payload !== null) return undefined;
  const shown = typeof hint === 'string' && !DEFAULT_HINT.test(hint) ? hint.trim() : '';
  return { request: { callId: id, tool, arguments: values }, hint: shown };
}

/**
 * The message of a question with a text for people. An ADK call has no such text, except that `adk_request_input` has one in its arguments.
 * A confirmation becomes a request for an approval.
 */
export function shownQuestion(message: Message): Message {
  const asked = openQuestion(message);
  if (asked !== undefined && 'call' in asked && asked.approves !== undefined) {
    const { request, hint } = message.parts.flatMap(part => confirmationOf(part) ?? [])[0]!;
    const question = [hint, approvalQuestion(request)].filter(text => text !== '').join('\n');
    return { ...message, parts: [...approvalRequestParts(request, question), ...message.parts] };
  }
  if (textOf(message.parts) !== '') return message;
  const texts = message.parts.flatMap(({ data }) => (isObject(data) && isObject(data.args) ? [data.args.message] : []));
  const text = texts.find(one => typeof one === 'string' && one !== '') ?? NO_TEXT;
  return { ...message, parts: [{ text: String(text) }, ...message.parts] };
}

/**
 * The parts of an answer in the form that the agent accepts. An answer with parts other than text stays as it is. The answer to a
 * confirmation stays unchanged only if it has the form of ADK; every other answer approves or refuses.
 */
export function answerParts(parts: Part[], question: OpenQuestion | undefined): Part[] {
  if (question === undefined) return parts;
  if ('call' in question && question.approves !== undefined) {
    if (parts.some(({ metadata }) => metadata?.adk_type === 'function_response')) return parts;
    const { approved } = readApprovalResponse(parts, { callId: question.approves });
    return [functionResponse(question.call, { confirmed: approved })];
  }
  if (parts.some(part => part.text === undefined)) return parts;
  const text = textOf(parts);
  if ('interruptId' in question) return [{ data: { interruptResponse: { interruptId: question.interruptId, response: text } } }];
  return [functionResponse(question.call, { result: text })];
}

function functionResponse(call: { id: string; name: string }, response: JsonObject): Part {
  return { data: { ...call, response }, metadata: { adk_type: 'function_response' } };
}

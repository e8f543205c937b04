import { isObject, type JsonObject, type Part } from '@hopline/a2a';
import { OpenAIError } from './openai-error.ts';
import { instructionsPart, questionOf } from './question.ts';
import { type ResponseRef, responseRefOf } from './response-id.ts';

type CommonRequest = {
  model: string;
  parts: Part[];
  stream: boolean;
  /** The conversation in A2A; undefined for a new one. */
  contextId: string | undefined;
};

export type CompletionRequest = CommonRequest & { includeUsage: boolean };

export type ResponseRequest = CommonRequest & {
  background: boolean;
  previous: ResponseRef | undefined;
  metadata: Readonly<Record<string, string>> | undefined;
};

/** `contextId`: from the headers of a request; `metadata.context_id` comes first. */
export function completionRequestOf(body: unknown, headers: { contextId?: string | undefined } = {}): CompletionRequest {
  const request = requestOf(body);
  refuse(request, ['tools', 'functions'], value => !isEmptyList(value), 'agents run their own tools');
  refuse(request, ['n'], value => value !== 1, 'a task has one answer');
  refuse(request, ['logprobs'], value => value !== false, 'agents do not report probabilities');
  refuse(
    request,
    ['response_format'],
    value => !isObject(value) || value.type !== 'text',
    'agents choose the form of their answer',
  );
  refuse(request, ['audio'], () => true, 'agents answer with text');
  const contextId = contextOf(request, headers.contextId);
  const { stream_options: options } = request;
  return {
    model: modelOf(request),
    parts: questionOf(request.messages, 'messages', { isContinued: contextId !== undefined }),
    stream: flagOf(request, 'stream'),
    includeUsage: isObject(options) && options.include_usage === true,
    contextId,
  };
}

export function responseRequestOf(body: unknown, headers: { contextId?: string | undefined } = {}): ResponseRequest {
  const request = requestOf(body);
  refuse(request, ['tools'], value => !isEmptyList(value), 'agents run their own tools');
  refuse(request, ['text'], value => !isObject(value) || !hasTextFormat(value.format), 'agents choose the form of their answer');
  refuse(request, ['prompt'], () => true, 'this server stores no prompts');
  const { previous_response_id: previousId, conversation = null, instructions = null } = request;
  const previous = previousId === undefined || previousId === null ? undefined : responseRefOf(previousId);
  if (previous === 'invalid')
    throw new OpenAIError(`Previous response with id '${String(previousId)}' not found.`, {
      ...{ status: 404, param: 'previous_response_id', code: 'previous_response_not_found' },
    });
  const named = conversation === null ? contextOf(request, headers.contextId) : conversationOf(conversation);
  if (previous !== undefined && conversation !== null)
    throw new OpenAIError('previous_response_id and conversation cannot be used together', { param: 'conversation' });
  if (instructions !== null && typeof instructions !== 'string')
    throw new OpenAIError('instructions must be a string', { param: 'instructions' });
  const isContinued = previous !== undefined || named !== undefined;
  const question = questionOf(inputOf(request.input), 'input', { isContinued });
  return {
    model: modelOf(request),
    parts: instructions === null || instructions === '' ? question : [instructionsPart(instructions), ...question],
    stream: flagOf(request, 'stream'),
    background: flagOf(request, 'background'),
    contextId: previous === undefined ? named : undefined,
    previous,
    metadata: metadataOf(request),
  };
}

/** Members that change nothing, such as `temperature`, are ignored; the guide lists them. */
function refuse(request: JsonObject, params: string[], isRefused: (value: unknown) => boolean, reason: string): void {
  for (const param of params) {
    const value = request[param];
    if (value !== undefined && value !== null && isRefused(value))
      throw new OpenAIError(`${param} is not supported: ${reason}`, { param, code: 'unsupported_parameter' });
  }
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function hasTextFormat(format: unknown): boolean {
  return format === undefined || format === null || (isObject(format) && format.type === 'text');
}

function requestOf(body: unknown): JsonObject {
  if (!isObject(body)) throw new OpenAIError('the body must be a JSON object');
  return body;
}

function modelOf({ model }: JsonObject): string {
  if (typeof model === 'string' && model !== '') return model;
  throw new OpenAIError('you must provide a model parameter', { param: 'model' });
}

function flagOf(request: JsonObject, param: string): boolean {
  const { [param]: value = null } = request;
  if (value !== null && typeof value !== 'boolean') throw new OpenAIError(`${param} must be true or false`, { param });
  return value === true;
}

function inputOf(input: unknown): unknown {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : input;
}

function contextOf(request: JsonObject, header: string | undefined): string | undefined {
  const named = metadataOf(request)?.context_id;
  return named === undefined || named === '' ? header : named;
}

function conversationOf(conversation: unknown): string {
  const id = isObject(conversation) ? conversation.id : conversation;
  if (typeof id === 'string' && id !== '') return id;
  throw new OpenAIError('conversation must be an id, or an object with an id', { param: 'conversation' });
}

function metadataOf({ metadata = null }: JsonObject): Record<string, string> | undefined {
  if (metadata === null) return undefined;
  if (!isObject(metadata) || Object.values(metadata).some(value => typeof value !== 'string'))
    throw new OpenAIError('metadata must be an object of strings', { param: 'metadata' });
  return metadata as Record<string, string>;
}

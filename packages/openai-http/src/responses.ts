import { A2AError, isInProgress, isTerminal, type Message, type TaskState } from '@hopline/a2a';
import {
  answerOf,
  answerQuestion,
  BEGINNING,
  type FrameEncoder,
  jsonOf,
  queryOf,
  readStream,
  type StreamReader,
  sendParams,
  streamOf,
} from '@hopline/a2a-http/front';
import {
  bodyOfError,
  OpenAIError,
  RESPONSE_METADATA,
  ResponseEncoder,
  type ResponseEvent,
  type ResponseRef,
  type ResponseRequest,
  responseIdOf,
  responseRefOf,
  responseRequestOf,
} from '@hopline/openai-api';
import type { FastifyReply } from 'fastify';
import { contextOfHeaders, messageFor, type OpenAIRequest, requireModel, sendJson, sendShutdown } from './openai-request.ts';

/** POST `/v1/responses`: sends the input, and answers with the response: as events, when its turn has ended, or at once in the background. */
export async function createResponse(request: OpenAIRequest): Promise<FastifyReply | undefined> {
  const asked = responseRequestOf(jsonOf(request.http.body), { contextId: contextOfHeaders(request.http) });
  requireModel(request, asked.model);
  const previous = asked.previous && (await previousOf(request, asked.previous));
  const isContinued = previous !== undefined && !isTerminal(previous.state);
  const { model, parts, background } = asked;
  const message = messageFor(request, {
    ...{ model, parts, contextId: previous?.contextId ?? asked.contextId },
    ...(isContinued && { taskId: previous.taskId }),
    metadata: { [RESPONSE_METADATA]: keptOf(asked) },
  });
  if (isContinued) return createAnswer(request, asked, message, previous);
  const call = { operation: 'stream', params: sendParams(message) } as const;
  const encoder = new LateEncoder();
  if (asked.stream) return streamOf(request, call, eventFrames(encoder));
  const isRead = await readStream(request, call, untilEnd(encoder, background));
  return isRead ? sendJson(request, encoder.response()) : sendShutdown(request, encoder.id);
}

/** The parts of a request that its response repeats. */
function keptOf({ background, metadata, previous }: ResponseRequest): object {
  return {
    ...(background && { background }),
    ...(metadata !== undefined && { metadata }),
    ...(previous !== undefined && { previous_response_id: responseIdOf(previous) }),
  };
}

/** `state`: of its task. One that has not ended is continued. */
type Previous = ResponseRef & { contextId: string; state: TaskState };

const PREVIOUS = 'previous_response_id';

async function previousOf(request: OpenAIRequest, ref: ResponseRef): Promise<Previous> {
  try {
    const task = await answerOf(request, { operation: 'get', params: { id: ref.taskId, historyLength: 0 } });
    return { ...ref, contextId: task.contextId, state: task.status.state };
  } catch (thrown) {
    if (!(thrown instanceof A2AError) || thrown.code !== 'TASK_NOT_FOUND') throw thrown;
    throw previousNotFound(ref);
  }
}

function previousNotFound(ref: ResponseRef): OpenAIError {
  const message = `Previous response with id '${responseIdOf(ref)}' not found.`;
  return new OpenAIError(message, { status: 404, param: PREVIOUS, code: 'previous_response_not_found' });
}

/** The answer to a question begins the next turn of the task. The response is read from the log, as any later reader reads it. */
async function createAnswer(
  request: OpenAIRequest,
  { stream, background }: ResponseRequest,
  message: Message,
  previous: Previous,
): Promise<FastifyReply | undefined> {
  const { taskId, state } = previous;
  const turn = await answerQuestion(request, () => message, previous).catch(thrown => {
    if (!(thrown instanceof A2AError) || thrown.code !== 'TASK_GENERATION_MISMATCH') throw thrown;
    throw new OpenAIError('the question of the previous response has been answered, or its task has ended', {
      ...{ status: 409, param: PREVIOUS, code: 'previous_response_answered' },
    });
  });
  if (turn === undefined && !isInProgress(state)) throw previousNotFound(previous);
  if (turn === undefined)
    throw new OpenAIError('the previous response is still in progress; retrieve it until it has completed', {
      param: PREVIOUS,
      code: 'previous_response_in_progress',
    });
  // The message is stored: whatever fails from here on, clients must not send it again by themselves.
  request.reply.header('x-should-retry', 'false');
  const ref = { taskId, turn };
  const encoder = new ResponseEncoder(ref);
  const call = { operation: 'subscribe', params: { id: taskId }, cursor: BEGINNING } as const;
  if (stream) return streamOf(request, call, eventFrames(encoder));
  const isRead = await readStream(request, call, untilEnd(encoder, background));
  return isRead ? sendJson(request, encoder.response()) : sendShutdown(request, responseIdOf(ref));
}

/** GET `/v1/responses/{id}`: the response as it is, or with `stream=true` its events after number `starting_after`, and those that follow. */
export async function retrieveResponse(request: OpenAIRequest): Promise<FastifyReply | undefined> {
  const ref = refOf(request);
  const call = { operation: 'subscribe', params: { id: ref.taskId }, cursor: BEGINNING } as const;
  if (queryOf(request.http, 'stream') !== 'true') return sendResponse(request, ref);
  const after = startingAfter(queryOf(request.http, 'starting_after'));
  return streamOf(request, call, eventFrames(new ResponseEncoder(ref), after));
}

/** POST `/v1/responses/{id}/cancel`: cancels the task. A response that has ended stays as it is. */
export async function cancelResponse(request: OpenAIRequest): Promise<FastifyReply> {
  const ref = refOf(request);
  try {
    await answerOf(request, { operation: 'cancel', params: { id: ref.taskId } });
  } catch (thrown) {
    if (!(thrown instanceof A2AError) || thrown.code !== 'TASK_NOT_CANCELABLE') throw thrown;
  }
  return sendResponse(request, ref);
}

/** DELETE `/v1/responses/{id}`. */
export async function refuseDelete(request: OpenAIRequest): Promise<never> {
  request.reply.header('allow', 'GET');
  throw new OpenAIError('responses cannot be deleted: retention of the log removes them', { status: 405 });
}

async function sendResponse(request: OpenAIRequest, ref: ResponseRef): Promise<FastifyReply> {
  const encoder = new ResponseEncoder(ref, { passesGaps: true });
  const call = { operation: 'subscribe', params: { id: ref.taskId }, cursor: BEGINNING } as const;
  const isRead = await readStream(request, call, {
    add: (item, isNewest) => {
      encoder.add(item);
      return isNewest || encoder.ended;
    },
  });
  // Has no task id, so that clients repeat the request automatically, because it changes nothing.
  if (!isRead) throw new A2AError('UNAVAILABLE', { detail: 'this server is shutting down' });
  if (!encoder.begun) throw notFound(responseIdOf(ref));
  return sendJson(request, encoder.response());
}

function refOf({ http }: OpenAIRequest): ResponseRef {
  const { id } = http.params as { id: string };
  const ref = responseRefOf(id);
  if (ref === 'invalid') throw notFound(id);
  return ref;
}

function notFound(id: string): OpenAIError {
  return new OpenAIError(`Response with id '${id}' not found.`, { status: 404, param: 'id', code: 'response_not_found' });
}

function startingAfter(text: string | undefined): number {
  if (text === undefined) return -1;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new OpenAIError('starting_after must be the sequence_number of an event', { param: 'starting_after' });
}

/** The encoder of a response whose task id is in the first event. */
class LateEncoder {
  #encoder: ResponseEncoder | undefined;
  #id: string | undefined;

  /** The id of the response, once the first event is read. */
  get id(): string | undefined {
    return this.#id;
  }

  get begun(): boolean {
    return this.#encoder?.begun === true;
  }

  get ended(): boolean {
    return this.#encoder?.ended === true;
  }

  add(item: Parameters<ResponseEncoder['add']>[0]): ResponseEvent[] {
    if (this.#encoder === undefined && 'event' in item && 'task' in item.event) {
      const ref = { taskId: item.event.task.id, turn: 1 };
      this.#encoder = new ResponseEncoder(ref);
      this.#id = responseIdOf(ref);
    }
    return this.#encoder?.add(item) ?? [];
  }

  response(): unknown {
    if (this.#encoder === undefined) throw new A2AError('UNAVAILABLE', { detail: 'the stream ended before its first event' });
    return this.#encoder.response();
  }
}

type AnyEncoder = Pick<ResponseEncoder, 'begun' | 'ended' | 'add'>;

/** `isBackground`: reads only up to the first event, whose response is in progress. */
function untilEnd(encoder: AnyEncoder, isBackground: boolean): StreamReader {
  return {
    add: item => {
      encoder.add(item);
      return encoder.ended || (isBackground && encoder.begun);
    },
  };
}

/** The task has fewer turns than the id of the response names. */
const MISSING = { type: 'error', code: 'response_not_found', message: 'the task has no such turn', param: null };

function eventFrames(encoder: AnyEncoder, after = -1): FrameEncoder {
  let isMissing = false;
  return {
    get ended() {
      return isMissing || encoder.ended;
    },
    add: (item, isNewest) => {
      const events = encoder.add(item).filter(({ sequence_number }) => sequence_number > after);
      isMissing = isNewest && !encoder.begun && !encoder.ended;
      return isMissing ? frameOf(MISSING) : events.map(frameOf).join('');
    },
    end: () => '',
    // Not an event of the log, so it has no number.
    fail: error => frameOf({ ...bodyOfError(error).error, type: 'error' }),
  };
}

/** JSON has no line breaks. */
function frameOf(event: { type: string }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

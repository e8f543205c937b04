import { hash, randomUUID } from 'node:crypto';
import { A2AError, DIALECTS, type JsonObject, type Message, type Operation, type Part } from '@hopline/a2a';
import type { ListedAgent } from '@hopline/a2a-http';
import {
  AnswerSink,
  bareJson,
  EncodedSink,
  encodeJson,
  type FrameEncoder,
  headerOf,
  operationRequest,
  type StreamReader,
  setErrorHeaders,
} from '@hopline/a2a-http/front';
import { type A2AServer, type OperationAnswer, runOperation } from '@hopline/a2a-server';
import type { Owner } from '@hopline/events';
import { ANY_AGENT, bodyOfError, OpenAIError } from '@hopline/openai-api';
import type { FastifyReply, FastifyRequest } from 'fastify';

export const BINDING = 'openai' as const;
/** The cursor before the first event of a task. */
export const BEGINNING = '0.0';

const dialect = DIALECTS['1.0'];

export type FrontRequest = {
  server: A2AServer;
  http: FastifyRequest;
  reply: FastifyReply;
  agents: () => readonly ListedAgent[];
  caller: Owner;
};

type OperationCall = { operation: Operation; params: object; cursor?: string };

/** Header by which Open WebUI names the chat of a request. */
const CHAT_HEADER = 'x-openwebui-chat-id';

/** The conversation that the headers of a request name. */
export function contextOfHeaders(http: FastifyRequest): string | undefined {
  return headerOf(http, CHAT_HEADER) || undefined;
}

/** The caller of a request, known before its body is read, so that a request without credentials does not learn which agents exist. */
export function callerOf(server: A2AServer, http: FastifyRequest): Promise<Owner> {
  return server.authenticate({ headers: http.headers, tenant: tenantOf(http) });
}

/** Throws 404 for a model that no agent has. Below a name, `/` names agents of further clusters. */
export function requireModel({ agents }: FrontRequest, model: string): void {
  const [name] = model.split('/');
  if (model === ANY_AGENT || agents().some(agent => agent.name === name)) return;
  throw new OpenAIError(`The model '${model}' does not exist; GET /v1/models lists the agents`, {
    ...{ status: 404, param: 'model', code: 'model_not_found' },
  });
}

/**
 * The message for the agent. A request with an `Idempotency-Key` that is sent again starts no second task, because its message and, without a
 * conversation, its context have ids made of the key.
 */
export function messageFor(
  { http, agents }: FrontRequest,
  { model, parts, contextId, taskId, metadata }: MessageContent,
): Message {
  const key = headerOf(http, 'idempotency-key') || undefined;
  const named = contextId ?? (key === undefined || taskId !== undefined ? undefined : `key-${digest(key)}`);
  const isAgent = model !== ANY_AGENT || agents().some(({ name }) => name === model);
  return {
    messageId: key === undefined ? randomUUID() : digest(key),
    role: 'ROLE_USER',
    parts,
    ...(named !== undefined && { contextId: named }),
    ...(taskId !== undefined && { taskId }),
    metadata: { ...(isAgent && { agent: model }), ...metadata },
  };
}

type MessageContent = {
  model: string;
  parts: Part[];
  contextId?: string | undefined;
  taskId?: string | undefined;
  metadata?: JsonObject;
};

function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

export function sendParams(message: Message, blocking = true): object {
  return dialect.encodeSend({ message, blocking });
}

/** Runs an operation that answers with JSON. */
export async function answerOf(request: FrontRequest, call: OperationCall): Promise<OperationAnswer> {
  let answer: OperationAnswer = null;
  // The client does not receive this answer, so it counts no sent bytes.
  const encode = (result: OperationAnswer) => {
    answer = result;
    return Buffer.alloc(0);
  };
  await run(request, call, { encode });
  return answer;
}

/** Turns the response into a stream of events. */
export async function streamOf(request: FrontRequest, call: OperationCall, encoder: FrameEncoder): Promise<undefined> {
  await run(request, call, { wrapSink: sse => new EncodedSink(sse, encoder) });
}

/** Reads the stream of a task. Resolves with false if the server began to shut down first. */
export async function readStream(request: FrontRequest, call: OperationCall, reader: StreamReader): Promise<boolean> {
  const sink = new AnswerSink(request.reply.raw, reader);
  await run(request, call, { sink });
  const end = await sink.ended;
  if (end instanceof A2AError) throw end;
  if (end === 'left') throw new A2AError('UNAVAILABLE', { detail: 'the client disconnected' });
  return end !== 'drain';
}

async function run(
  { server, http, reply }: FrontRequest,
  { operation, params, cursor }: OperationCall,
  more: Partial<Parameters<typeof operationRequest>[3]>,
): Promise<void> {
  const tenant = tenantOf(http);
  const understood = {
    ...{ binding: BINDING, dialect, params: { ...params, ...(tenant !== undefined && { tenant }) }, encode: encodeJson },
    framing: { before: '', after: '', failure: bodyOfError },
    ...(cursor !== undefined && { cursor }),
    ...more,
  };
  await runOperation(server, operation, operationRequest(server, http, reply, understood));
}

function tenantOf({ params }: FastifyRequest): string | undefined {
  return (params as { tenant?: string }).tenant;
}

/** Sends an object, and counts its bytes for the caller. */
export function sendJson({ server, reply, caller }: FrontRequest, body: unknown, status = 200): FastifyReply {
  const json = encodeJson(body);
  server.quotas.countSent(caller, json.length);
  return bareJson(reply.code(status), 'application/json', json);
}

export function failureOf(thrown: unknown): OpenAIError | A2AError {
  return thrown instanceof OpenAIError ? thrown : A2AError.from(thrown);
}

/**
 * `x-should-retry`: clients of OpenAI repeat requests after 429 and 5xx by themselves. A message that is stored, or whose task has failed, must not
 * be sent again.
 */
export function sendFailure(reply: FastifyReply, failure: OpenAIError | A2AError, status?: number): FastifyReply {
  if (failure instanceof OpenAIError) {
    reply.code(failure.status);
    return bareJson(reply, 'application/json', encodeJson(failure.body));
  }
  setErrorHeaders(reply, failure);
  if (failure.taskId !== undefined) reply.header('x-should-retry', 'false');
  return bareJson(reply.code(status ?? failure.row.http), 'application/json', encodeJson(bodyOfError(failure)));
}

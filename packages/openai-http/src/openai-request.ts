import { hash, randomUUID } from 'node:crypto';
import { A2AError, type JsonObject, type Message, type Part } from '@hopline/a2a';
import type { ListedAgent } from '@hopline/a2a-http';
import {
  bareJson,
  encodeJson,
  type FrontRequest,
  headerOf,
  setErrorHeaders,
  tenantOf,
  uncountedBytes,
} from '@hopline/a2a-http/front';
import type { A2AServer } from '@hopline/a2a-server';
import type { Owner } from '@hopline/events';
import { ANY_AGENT, bodyOfError, OpenAIError } from '@hopline/openai-api';
import type { FastifyReply, FastifyRequest } from 'fastify';

export const BINDING = 'openai' as const;

export type OpenAIRequest = FrontRequest & {
  agents: () => readonly ListedAgent[];
  caller: Owner;
};

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

/** Counts a request that needs no operation of A2A. Throws QUOTA_EXCEEDED. */
export function takeRequest({ server, http, caller }: OpenAIRequest): void {
  server.metrics?.tenantRequests.add(1, server.metrics.parties.of(caller));
  server.quotas.takeBytes(caller, uncountedBytes(http), false);
  server.quotas.requireSentRoom(caller);
}

/** Throws 404 for a model that no agent has. Below a name, `/` names agents of further clusters. */
export function requireModel({ agents }: OpenAIRequest, model: string): void {
  const [name] = model.split('/');
  if (model === ANY_AGENT || agents().some(agent => agent.name === name)) return;
  throw new OpenAIError(`The model '${model}' does not exist; GET /v1/models lists the agents`, {
    ...{ status: 404, param: 'model', code: 'model_not_found' },
  });
}

/**
 * The message for the agent. A request with an `Idempotency-Key` that is sent again starts no second task, because its message and, without
 * a conversation, its context have ids derived from the key.
 */
export function messageFor(
  { http, agents }: OpenAIRequest,
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

/** Sends an object, and counts its bytes for the caller. */
export function sendJson({ server, reply, caller }: OpenAIRequest, body: unknown, status = 200): FastifyReply {
  const json = encodeJson(body);
  server.quotas.countSent(caller, json.length);
  return bareJson(reply.code(status), 'application/json', json);
}

/**
 * The answer of a server that shuts down when the message is stored. Clients must not send it again by themselves. `responseId`: the response that a
 * client retrieves instead.
 */
export function sendShutdown(request: OpenAIRequest, responseId?: string): FastifyReply {
  const message = `this server is shutting down${responseId === undefined ? '' : `; retrieve the response ${responseId}`}`;
  request.reply.header('x-should-retry', 'false');
  return sendJson(request, { error: { message, type: 'server_error', param: null, code: 'shutdown' } }, 503);
}

export function failureOf(thrown: unknown): OpenAIError | A2AError {
  return thrown instanceof OpenAIError ? thrown : A2AError.from(thrown);
}

/**
 * `x-should-retry`: clients of OpenAI repeat requests after 409, 429 and 5xx by themselves. A message that is stored, whose task has failed, or that
 * came too late must not be sent again.
 */
export function sendFailure(reply: FastifyReply, failure: OpenAIError | A2AError, status?: number): FastifyReply {
  if (failure instanceof OpenAIError) {
    reply.code(failure.status);
    if (failure.status === 409) reply.header('x-should-retry', 'false');
    return bareJson(reply, 'application/json', encodeJson(failure.body));
  }
  setErrorHeaders(reply, failure);
  if (failure.taskId !== undefined) reply.header('x-should-retry', 'false');
  return bareJson(reply.code(status ?? failure.row.http), 'application/json', encodeJson(bodyOfError(failure)));
}

import { randomUUID } from 'node:crypto';
import { A2AError, DIALECTS, httpJsonFailure, isInProgress, isObject, type Operation, stateWord, type Task } from '@hopline/a2a';
import {
  AGENT_HEADER,
  bareJson,
  encodeJson,
  type Front,
  headerOf,
  jsonOf,
  operationRequest,
  sendRestError,
} from '@hopline/a2a-http/front';
import { type A2AServer, type OperationAnswer, report, runOperation } from '@hopline/a2a-server';
import {
  answerIdOf,
  CHAT_TASKS_MAX,
  ChatMessageError,
  chatRequestOf,
  type ShownTurn,
  turnToResume,
  UI_STREAM_HEADER,
  UI_STREAM_VERSION,
} from '@hopline/ui-message-stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ChunkSink } from './chunk-sink.ts';

const BINDING = 'ai-sdk' as const;
const PREFIXES = ['', '/:tenant'];
const dialect = DIALECTS['1.0'];

/** Newest messages of a task among which the user's is looked for. An agent may add messages of its own after it. */
const HISTORY_MESSAGES_MAX = 20;
/** The cursor before the first event. */
const BEGINNING = '0.0';

type Handler = (server: A2AServer, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined>;

/**
 * The AI SDK's chat protocol: `POST /ui/chat` sends a message, `GET /ui/chat/{id}/stream` resumes its answer, `POST /ui/chat/{id}/stop` cancels it.
 * A chat is a context. The operations are those of A2A, for the same callers.
 */
export const aiSdkFront: Front = (scope, server) => {
  const answer = (handler: Handler) => async (request: FastifyRequest, reply: FastifyReply) => {
    server.metrics?.received.add(Number(request.headers['content-length'] ?? 0));
    try {
      return await handler(server, request, reply);
    } catch (thrown) {
      const error = errorOf(thrown);
      report(server, error, { binding: BINDING, headers: request.headers });
      return reply.sent ? undefined : sendRestError(request, reply, error);
    }
  };
  for (const prefix of PREFIXES) {
    scope.post(`${prefix}/ui/chat`, answer(sendMessage));
    scope.get(`${prefix}/ui/chat/:chatId/stream`, { exposeHeadRoute: false }, answer(resumeStream));
    scope.post(`${prefix}/ui/chat/:chatId/stop`, answer(stopTask));
  }
};

async function sendMessage(server: A2AServer, request: FastifyRequest, reply: FastifyReply): Promise<undefined> {
  const body = jsonOf(request.body);
  if (!isObject(body)) throw new A2AError('INVALID_PARAMS', { detail: 'the body must be a JSON object' });
  const { id: chatId, messages, trigger } = body;
  const { contextId, messageId, parts, taskId } = chatRequestOf({ chatId, messages, trigger }, randomUUID);
  const agent = agentOf(request, body.agent);
  const params = dialect.encodeSend({
    message: { messageId, role: 'ROLE_USER', parts, contextId, ...(taskId !== undefined && { taskId }) },
    blocking: true,
    ...(agent !== undefined && { metadata: { agent } }),
  });
  await openStream(server, request, reply, {
    operation: 'stream',
    params,
    turn: { messageId: answerIdOf(messageId), continues: taskId !== undefined },
  });
}

async function resumeStream(server: A2AServer, request: FastifyRequest, reply: FastifyReply) {
  const resumed = turnToResume(await tasksOf(server, request, reply), Date.now());
  if (resumed === undefined) return reply.code(204).send();
  const { task, turn } = resumed;
  await openStream(server, request, reply, { operation: 'subscribe', params: { id: task.id }, turn, cursor: BEGINNING });
  return undefined;
}

async function stopTask(server: A2AServer, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const task = (await tasksOf(server, request, reply)).find(({ status }) => isInProgress(status.state));
  if (task === undefined) return reply.code(204).send();
  const canceled = (await answerOf(server, request, reply, 'cancel', { id: task.id })) as unknown as Task;
  return bareJson(reply, 'application/json', encodeJson({ taskId: canceled.id, state: stateWord(canceled.status.state) }));
}

/** The tasks of the chat, newest status first. */
async function tasksOf(server: A2AServer, request: FastifyRequest, reply: FastifyReply): Promise<Task[]> {
  const { chatId: contextId } = request.params as { chatId: string };
  const params = { contextId, pageSize: CHAT_TASKS_MAX, historyLength: HISTORY_MESSAGES_MAX };
  const { tasks } = (await answerOf(server, request, reply, 'list', params)) as unknown as { tasks: Task[] };
  return tasks;
}

/** Runs an operation that answers with JSON. */
async function answerOf(
  server: A2AServer,
  request: FastifyRequest,
  reply: FastifyReply,
  operation: Operation,
  params: object,
): Promise<OperationAnswer> {
  let answer: OperationAnswer = null;
  // The page does not receive this answer, so it counts no sent bytes.
  const encode = (result: OperationAnswer) => {
    answer = result;
    return Buffer.alloc(0);
  };
  await runOperation(server, operation, operationRequest(server, request, reply, understood(request, params, encode)));
  return answer;
}

async function openStream(
  server: A2AServer,
  request: FastifyRequest,
  reply: FastifyReply,
  { operation, params, turn, cursor }: { operation: Operation; params: object; turn: ShownTurn; cursor?: string },
): Promise<void> {
  const streamed = {
    ...understood(request, params, encodeJson),
    ...(cursor !== undefined && { cursor }),
    wrapSink: (sse: ConstructorParameters<typeof ChunkSink>[0]) => new ChunkSink(sse, turn),
  };
  reply.header(UI_STREAM_HEADER, UI_STREAM_VERSION);
  await runOperation(server, operation, operationRequest(server, request, reply, streamed));
}

function understood(request: FastifyRequest, params: object, encode: (answer: OperationAnswer) => Buffer) {
  const { tenant } = request.params as { tenant?: string };
  const framing = { before: '', after: '', failure: (error: A2AError) => httpJsonFailure(error) };
  return { binding: BINDING, dialect, params: { ...params, ...(tenant !== undefined && { tenant }) }, encode, framing };
}

function agentOf(request: FastifyRequest, named: unknown): string | undefined {
  if (named !== undefined && typeof named !== 'string')
    throw new A2AError('INVALID_PARAMS', { detail: 'agent must be a string' });
  return named ?? headerOf(request, AGENT_HEADER);
}

function errorOf(thrown: unknown): A2AError {
  if (thrown instanceof ChatMessageError) return new A2AError('INVALID_PARAMS', { detail: thrown.message });
  return A2AError.from(thrown);
}

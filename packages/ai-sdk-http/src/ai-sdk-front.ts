import { randomUUID } from 'node:crypto';
import { A2AError, DIALECTS, httpJsonFailure, isInProgress, isObject, stateWord, type Task } from '@hopline/a2a';
import {
  AGENT_HEADER,
  answerOf,
  BEGINNING,
  bareJson,
  encodeJson,
  type Front,
  type FrontCall,
  type FrontRequest,
  headerOf,
  jsonOf,
  sendRestError,
  streamOf,
} from '@hopline/a2a-http/front';
import { report } from '@hopline/a2a-server';
import {
  CHAT_TASKS_MAX,
  ChatMessageError,
  type ShownTurn,
  turnToResume,
  UI_STREAM_HEADER,
  UI_STREAM_VERSION,
  uiChatRequestOf,
} from '@hopline/ui-message-stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { chunkFrames } from './chunk-frames.ts';

const BINDING = 'ai-sdk' as const;
const PREFIXES = ['', '/:tenant'];
const dialect = DIALECTS['1.0'];

/** Number of newest messages of a task among which the user's message is looked for. An agent may add messages of its own after it. */
const HISTORY_MESSAGES_MAX = 20;

type Handler = (request: FrontRequest) => Promise<FastifyReply | undefined>;

/**
 * The AI SDK's chat protocol: `POST /ui/chat` sends a message, `GET /ui/chat/{id}/stream` resumes its answer, `POST /ui/chat/{id}/stop` cancels it.
 * A chat is a context. The operations are those of A2A, for the same callers.
 */
export const aiSdkFront: Front = (scope, server) => {
  const answer = (handler: Handler) => async (request: FastifyRequest, reply: FastifyReply) => {
    server.metrics?.received.add(Number(request.headers['content-length'] ?? 0));
    try {
      return await handler({ server, http: request, reply, binding: BINDING, failure: error => httpJsonFailure(error) });
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

async function sendMessage(request: FrontRequest): Promise<undefined> {
  const body = jsonOf(request.http.body);
  if (!isObject(body)) throw new A2AError('INVALID_PARAMS', { detail: 'the body must be a JSON object' });
  const { id: chatId, messages, trigger, messageId: editedId } = body;
  const asked = uiChatRequestOf({ chatId, messages, trigger, messageId: editedId }, randomUUID);
  const { contextId, messageId, parts, taskId, turn } = asked;
  const agent = agentOf(request.http, body.agent);
  const params = dialect.encodeSend({
    message: { messageId, role: 'ROLE_USER', parts, contextId, ...(taskId !== undefined && { taskId }) },
    blocking: true,
    ...(agent !== undefined && { metadata: { agent } }),
  });
  return chunksOf(request, { operation: 'stream', params }, turn);
}

async function resumeStream(request: FrontRequest): Promise<FastifyReply | undefined> {
  const resumed = turnToResume(await tasksOf(request), Date.now());
  if (resumed === undefined) return request.reply.code(204).send();
  const { task, turn } = resumed;
  return chunksOf(request, { operation: 'subscribe', params: { id: task.id }, cursor: BEGINNING }, turn);
}

async function stopTask(request: FrontRequest): Promise<FastifyReply> {
  const { reply } = request;
  const task = (await tasksOf(request)).find(({ status }) => isInProgress(status.state));
  if (task === undefined) return reply.code(204).send();
  const canceled = await answerOf(request, { operation: 'cancel', params: { id: task.id } });
  return bareJson(reply, 'application/json', encodeJson({ taskId: canceled.id, state: stateWord(canceled.status.state) }));
}

/** The tasks of the chat, newest status first. */
async function tasksOf(request: FrontRequest): Promise<Task[]> {
  const { chatId: contextId } = request.http.params as { chatId: string };
  const params = { contextId, pageSize: CHAT_TASKS_MAX, historyLength: HISTORY_MESSAGES_MAX };
  const { tasks } = await answerOf(request, { operation: 'list', params });
  return tasks;
}

function chunksOf(request: FrontRequest, call: FrontCall, turn: ShownTurn): Promise<undefined> {
  request.reply.header(UI_STREAM_HEADER, UI_STREAM_VERSION);
  return streamOf(request, call, chunkFrames(turn));
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

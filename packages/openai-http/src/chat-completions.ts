import { randomUUID } from 'node:crypto';
import type { A2AError } from '@hopline/a2a';
import { answerOf, type FrameEncoder, jsonOf, readStream, sendParams, streamOf } from '@hopline/a2a-http/front';
import {
  bodyOfError,
  ChatEncoder,
  type CompletionRequest,
  completionRequestOf,
  sideAnswerOf,
  sideCompletion,
} from '@hopline/openai-api';
import type { FastifyReply } from 'fastify';
import {
  contextOfHeaders,
  messageFor,
  type OpenAIRequest,
  requireModel,
  sendJson,
  sendShutdown,
  takeRequest,
} from './openai-request.ts';

const DONE = 'data: [DONE]\n\n';

/** POST `/v1/chat/completions`: sends the question, and answers with its turn, as one object or as chunks. */
export async function createChatCompletion(request: OpenAIRequest): Promise<FastifyReply | undefined> {
  const body = jsonOf(request.http.body);
  const chat = completionRequestOf(body, { contextId: contextOfHeaders(request.http) });
  const { model, parts, contextId, stream, includeUsage } = chat;
  requireModel(request, model);
  const content = sideAnswerOf(body);
  if (content !== undefined) {
    takeRequest(request);
    return sendJson(request, sideCompletion({ model, content, id: randomUUID(), now: Date.now() }));
  }
  const taskId = await askingTask(request, chat);
  const encoder = new ChatEncoder({ model, includesUsage: includeUsage, continues: taskId !== undefined });
  const message = messageFor(request, { model, parts, contextId, taskId });
  const call = { operation: 'stream', params: sendParams(message) } as const;
  if (stream) return streamOf(request, call, chunkFrames(encoder));
  const isRead = await readStream(request, call, {
    add: item => {
      encoder.add(item);
      return encoder.ended;
    },
  });
  if (!isRead) return sendShutdown(request);
  const { failure } = encoder;
  if (failure === undefined) return sendJson(request, encoder.completion());
  // The message is stored: clients must not send it again by themselves.
  request.reply.header('x-should-retry', 'false');
  return sendJson(request, failure, 500);
}

/** The newest task of the conversation that waits for the user: the message answers its question. */
async function askingTask(request: OpenAIRequest, { contextId }: CompletionRequest): Promise<string | undefined> {
  if (contextId === undefined) return undefined;
  const params = { contextId, status: 'TASK_STATE_INPUT_REQUIRED', pageSize: 1 };
  const { tasks } = await answerOf(request, { operation: 'list', params });
  return tasks[0]?.id;
}

function chunkFrames(encoder: ChatEncoder): FrameEncoder {
  // JSON has no line breaks.
  const frame = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
  const failed = () => encoder.failure;
  return {
    get ended() {
      return encoder.ended;
    },
    add: item => encoder.add(item).map(frame).join(''),
    end: () => {
      const failure = failed();
      return failure === undefined ? DONE : frame(failure);
    },
    fail: (error: A2AError) => frame(bodyOfError(error)),
  };
}

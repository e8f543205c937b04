import { A2AError, DIALECTS, type Message, type Operation, type Task } from '@hopline/a2a';
import { type A2AServer, type OperationAnswer, runOperation, type ServerRequest } from '@hopline/a2a-server';
import { formatCursor } from '@hopline/events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AnswerSink, type StreamReader } from './answer-sink.ts';
import { EncodedSink, type FrameEncoder } from './encoded-sink.ts';
import { operationRequest, type UnderstoodRequest } from './operation-request.ts';
import { encodeJson } from './rest/rest-request.ts';
import type { Framing } from './sse-sink.ts';

/** The cursor before the first event of a task. */
export const BEGINNING = formatCursor({ generation: 0, seq: 0 });

const dialect = DIALECTS['1.0'];

/** A request to another protocol. */
export type FrontRequest = {
  server: A2AServer;
  http: FastifyRequest;
  reply: FastifyReply;
  binding: ServerRequest['binding'];
  /** The form of a failure in this protocol. */
  failure: Framing['failure'];
};

/** An operation of A2A 1.0 that a request needs. */
export type FrontCall = { operation: Operation; params: object; cursor?: string };

/** Runs an operation that answers with JSON. */
export async function answerOf(request: FrontRequest, call: FrontCall): Promise<OperationAnswer> {
  let answer: OperationAnswer = null;
  // The client does not receive this answer, so it counts no sent bytes.
  const encode = (result: OperationAnswer) => {
    answer = result;
    return Buffer.alloc(0);
  };
  await run(request, call, { encode });
  return answer;
}

/** Turns the response into a stream of the protocol's events. */
export async function streamOf(request: FrontRequest, call: FrontCall, encoder: FrameEncoder): Promise<undefined> {
  await run(request, call, { wrapSink: sse => new EncodedSink(sse, encoder) });
}

/**
 * Reads the stream of a task, for at most `waitMs`. Resolves with false if the server began to shut down first. Rejects with the failure of the
 * stream.
 */
export async function readStream(
  request: FrontRequest,
  call: FrontCall,
  reader: StreamReader,
  waitMs?: number,
): Promise<boolean> {
  const sink = new AnswerSink(request.reply.raw, reader, waitMs);
  await run(request, call, { sink });
  const end = await sink.ended;
  if (end instanceof A2AError) throw end;
  if (end === 'left') throw new A2AError('UNAVAILABLE', { detail: 'the client disconnected' });
  return end !== 'drain';
}

/** Params of a message. `blocking`: the answer waits for the end of its turn. */
export function sendParams(message: Message, blocking = true): object {
  return dialect.encodeSend({ message, blocking });
}

/** Sends the answer to a question of a task. Resolves with the number of the turn that it begins. */
export async function answerQuestion(request: FrontRequest, message: Message, taskId: string): Promise<number> {
  await answerOf(request, { operation: 'send', params: sendParams(message, false) });
  const task = (await answerOf(request, { operation: 'get', params: { id: taskId } })) as unknown as Task;
  const sent = (task.history ?? []).filter(({ role }) => role === 'ROLE_USER');
  return sent.findIndex(({ messageId }) => messageId === message.messageId) + 1;
}

/** The tenant in the path of a request. */
export function tenantOf({ params }: FastifyRequest): string | undefined {
  return (params as { tenant?: string }).tenant;
}

async function run(
  { server, http, reply, binding, failure }: FrontRequest,
  { operation, params, cursor }: FrontCall,
  more: Partial<UnderstoodRequest>,
): Promise<void> {
  const tenant = tenantOf(http);
  const understood = {
    ...{ binding, dialect, params: { ...params, ...(tenant !== undefined && { tenant }) }, encode: encodeJson },
    framing: { before: '', after: '', failure },
    ...(cursor !== undefined && { cursor }),
    ...more,
  };
  await runOperation(server, operation, operationRequest(server, http, reply, understood));
}

import { A2AError, DIALECTS, isInterrupted, type Message, type Operation, type Task, type TaskState } from '@hopline/a2a';
import { type A2AServer, type OperationAnswer, runOperation, type ServerRequest } from '@hopline/a2a-server';
import { formatCursor, parseCursor } from '@hopline/events';
import { ViewFold } from '@hopline/task-view';
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
export type FrontCall<O extends Operation = Operation> = { operation: O; params: object; cursor?: string };

/** The answers of A2A 1.0 that fronts read. */
type Answers = {
  send: { task: Task } | { message: Message };
  get: Task;
  cancel: Task;
  list: { tasks: Task[] };
};

/** Runs an operation that answers with JSON. */
export async function answerOf<O extends keyof Answers>(request: FrontRequest, call: FrontCall<O>): Promise<Answers[O]> {
  let answer: OperationAnswer = null;
  // The client does not receive this answer, so its bytes do not count as sent.
  const encode = (result: OperationAnswer) => {
    answer = result;
    return Buffer.alloc(0);
  };
  await run(request, call, { encode });
  // The dialect encodes each answer as a JSON object, so its type is lost on the way here.
  return answer as unknown as Answers[O];
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

/**
 * A question of a task, identified by the turn that ended with it. Turns are counted as in `ViewFold`: a message to a working task does not
 * begin one.
 */
export type QuestionRef = { taskId: string; turn: number };

/** `generation` is the task's newest one while the question was open. `message` contains the question. */
type Question = { generation: number; isAnswered: boolean; message: Message | undefined };

/** Finds a question in the log of its task. Undefined: the turn has not ended with one. */
export async function findQuestion(request: FrontRequest, { taskId, turn }: QuestionRef): Promise<Question | undefined> {
  const fold = new ViewFold();
  let hasGap = false;
  let current = 1;
  let state: TaskState = 'TASK_STATE_SUBMITTED';
  let generation: number | undefined;
  let message: Message | undefined;
  const call = { operation: 'subscribe', params: { id: taskId }, cursor: BEGINNING } as const;
  const isRead = await readStream(request, call, {
    add: (item, isNewest) => {
      for (const change of fold.add(item)) {
        if (change.kind === 'turn') current = change.turn;
        else if (change.kind === 'state') state = change.state;
      }
      if ('gap' in item) hasGap = true;
      // Turns cannot be counted across a gap. The open question then counts as the one that the client answers.
      else if (isInterrupted(state) && (current === turn || hasGap)) {
        generation = parseCursor(item.cursor)?.generation;
        message = fold.view.question?.message;
      }
      return isNewest || (!hasGap && current > turn);
    },
  });
  if (!isRead) throw new A2AError('UNAVAILABLE', { detail: 'this server is shutting down' });
  return generation === undefined ? undefined : { generation, isAnswered: !hasGap && current > turn, message };
}

/**
 * Sends the answer to a question, on the condition that the question is open: the second of two answers is refused and not stored. A
 * repetition of the first one is accepted. `answer` makes the answer from the message with the question. Resolves with the number of the
 * turn that it begins, or with undefined if the task has not asked that question.
 */
export async function answerQuestion(
  request: FrontRequest,
  answer: (question: Message | undefined) => Message,
  question: QuestionRef,
): Promise<number | undefined> {
  const found = await findQuestion(request, question);
  if (found === undefined) return undefined;
  const params = dialect.encodeSend({ message: answer(found.message), blocking: false, ifGenerationMatch: found.generation });
  try {
    await answerOf(request, { operation: 'send', params });
  } catch (thrown) {
    throw thrown instanceof A2AError && thrown.code === 'TASK_GENERATION_MISMATCH' ? questionAnswered(thrown) : thrown;
  }
  return question.turn + 1;
}

/** The conflict of a request about a question that is not open any more. */
export function questionAnswered({ taskId, generations }: Pick<A2AError, 'taskId' | 'generations'>): A2AError {
  return new A2AError('TASK_GENERATION_MISMATCH', {
    detail: 'the question has been answered, or its task has ended; get the task',
    ...(taskId !== undefined && { taskId }),
    ...(generations && { generations }),
  });
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

import {
  A2AError,
  approvalRequestOf,
  approvalResponsePart,
  httpJsonFailure,
  type Message,
  type Part,
  SSE_CONTENT_TYPE,
} from '@hopline/a2a';
import {
  AGENT_HEADER,
  answerOf,
  answerQuestion,
  BEGINNING,
  type FrameEncoder,
  type Front,
  type FrontCall,
  type FrontRequest,
  findQuestion,
  headerOf,
  jsonOf,
  type QuestionRef,
  questionAnswered,
  sendParams,
  sendRestError,
  streamOf,
} from '@hopline/a2a-http/front';
import { report } from '@hopline/a2a-server';
import { type AgUiEvent, RunEncoder, RunInputError, type RunRequest, runRequestOf } from '@hopline/ag-ui';
import type { FastifyReply, FastifyRequest } from 'fastify';

const BINDING = 'ag-ui' as const;
const PREFIXES = ['', '/:tenant'];

/**
 * AG-UI: `POST /agui` and `POST /agui/{agent}` take the input of a run and stream its events. A thread is a context, and a run is one turn of a task.
 * A run that is sent again is resumed.
 */
export const agUiFront: Front = (scope, server) => {
  const answer = async (http: FastifyRequest, reply: FastifyReply) => {
    server.metrics?.received.add(Number(http.headers['content-length'] ?? 0));
    try {
      return await run({ server, http, reply, binding: BINDING, failure: error => httpJsonFailure(error) });
    } catch (thrown) {
      const error =
        thrown instanceof RunInputError ? new A2AError('INVALID_PARAMS', { detail: thrown.message }) : A2AError.from(thrown);
      report(server, error, { binding: BINDING, headers: http.headers });
      return reply.sent ? undefined : sendRestError(http, reply, error);
    }
  };
  for (const prefix of PREFIXES) for (const path of ['/agui', '/agui/:agent']) scope.post(`${prefix}${path}`, answer);
};

async function run(request: FrontRequest): Promise<FastifyReply | undefined> {
  const asked = runRequestOf(jsonOf(request.http.body));
  const { threadId, runId, parts, decision, interrupt } = asked;
  if (interrupt?.isCancelled === true) return cancelQuestion(request, asked, interrupt);
  const agent = agentOf(request.http);
  const message: Message = {
    ...{ messageId: runId, role: 'ROLE_USER', parts, contextId: threadId },
    ...(interrupt !== undefined && { taskId: interrupt.taskId }),
    ...(agent !== undefined && { metadata: { agent } }),
  };
  if (interrupt === undefined) return streamRun(request, asked, { operation: 'stream', params: sendParams(message) }, 1);
  const { taskId: id } = interrupt;
  const turn = await answerQuestion(
    request,
    question => ({ ...message, parts: answerPartsOf(question, { parts, decision }) }),
    interrupt,
  );
  if (turn === undefined) throw noQuestion();
  return streamRun(request, asked, { operation: 'subscribe', params: { id }, cursor: BEGINNING }, turn);
}

/** A decision answers a question for an approval. For any other question, the payload is passed on unchanged. */
function answerPartsOf(question: Message | undefined, { parts, decision }: Pick<RunRequest, 'parts' | 'decision'>): Part[] {
  const asked = decision && approvalRequestOf(question);
  return asked === undefined ? parts : [approvalResponsePart({ callId: asked.callId, ...decision! })];
}

async function streamRun(request: FrontRequest, asked: RunRequest, call: FrontCall, turn: number): Promise<undefined> {
  const { threadId, runId, messages, state } = asked;
  const encoder = runFrames(new RunEncoder({ threadId, runId, messages, state, turn }));
  return streamOf(request, call, encoder);
}

/** Cancels the task of a question that the user declines to answer. Throws if the question has already been answered. */
async function cancelQuestion(
  request: FrontRequest,
  { threadId, runId }: RunRequest,
  question: QuestionRef,
): Promise<FastifyReply> {
  const { taskId } = question;
  const found = await findQuestion(request, question);
  if (found === undefined) throw noQuestion();
  if (found.isAnswered) throw questionAnswered({ taskId, generations: undefined });
  await answerOf(request, { operation: 'cancel', params: { id: taskId } }).catch(thrown => {
    if (!(thrown instanceof A2AError) || thrown.code !== 'TASK_NOT_CANCELABLE') throw thrown;
  });
  const started: AgUiEvent = { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' };
  const finished: AgUiEvent = { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'cancelled' } };
  return request.reply
    .type(`${SSE_CONTENT_TYPE}; charset=utf-8`)
    .header('cache-control', 'no-store')
    .send([started, finished].map(frame).join(''));
}

function noQuestion(): RunInputError {
  return new RunInputError('resume[0].interruptId must be the id of a question that the task has asked');
}

function agentOf(http: FastifyRequest): string | undefined {
  const { agent } = http.params as { agent?: string };
  return agent ?? headerOf(http, AGENT_HEADER);
}

function runFrames(encoder: RunEncoder): FrameEncoder {
  return {
    get ended() {
      return encoder.ended;
    },
    add: (item, isNewest) => encoder.add(item, { isStored: !isNewest }).map(frame).join(''),
    end: () =>
      encoder.ended ? '' : frame({ type: 'RUN_ERROR', message: 'events of this run have expired', code: 'events_expired' }),
    fail: ({ code, message }) => frame({ type: 'RUN_ERROR', message, code: code.toLowerCase() }),
  };
}

/** JSON has no line breaks. */
function frame(event: AgUiEvent): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

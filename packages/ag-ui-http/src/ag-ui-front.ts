import { A2AError, DIALECTS, httpJsonFailure, type Message, type Operation, SSE_CONTENT_TYPE, type Task } from '@hopline/a2a';
import {
  AGENT_HEADER,
  EncodedSink,
  encodeJson,
  type FrameEncoder,
  type Front,
  headerOf,
  jsonOf,
  operationRequest,
  sendRestError,
} from '@hopline/a2a-http/front';
import { type A2AServer, type OperationAnswer, report, runOperation } from '@hopline/a2a-server';
import { type AgUiEvent, RunEncoder, RunInputError, type RunRequest, runRequestOf } from '@hopline/ag-ui';
import type { FastifyReply, FastifyRequest } from 'fastify';

const BINDING = 'ag-ui' as const;
const PREFIXES = ['', '/:tenant'];
/** The cursor before the first event of a task. */
const BEGINNING = '0.0';

const dialect = DIALECTS['1.0'];

type HttpRequest = { server: A2AServer; http: FastifyRequest; reply: FastifyReply };
type OperationCall = { operation: Operation; params: object; cursor?: string };

/**
 * AG-UI: `POST /agui` and `POST /agui/{agent}` take the input of a run and stream its events. A thread is a context, and a run is one turn of a task.
 * The same run sent again is resumed.
 */
export const agUiFront: Front = (scope, server) => {
  const answer = async (http: FastifyRequest, reply: FastifyReply) => {
    server.metrics?.received.add(Number(http.headers['content-length'] ?? 0));
    try {
      return await run({ server, http, reply });
    } catch (thrown) {
      const error =
        thrown instanceof RunInputError ? new A2AError('INVALID_PARAMS', { detail: thrown.message }) : A2AError.from(thrown);
      report(server, error, { binding: BINDING, headers: http.headers });
      return reply.sent ? undefined : sendRestError(http, reply, error);
    }
  };
  for (const prefix of PREFIXES) for (const path of ['/agui', '/agui/:agent']) scope.post(`${prefix}${path}`, answer);
};

async function run(request: HttpRequest): Promise<FastifyReply | undefined> {
  const asked = runRequestOf(jsonOf(request.http.body));
  const { threadId, runId, parts, interrupt } = asked;
  if (interrupt?.isCancelled === true) return cancelQuestion(request, asked, interrupt.taskId);
  const agent = agentOf(request.http);
  const message: Message = {
    ...{ messageId: runId, role: 'ROLE_USER', parts, contextId: threadId },
    ...(interrupt !== undefined && { taskId: interrupt.taskId }),
    ...(agent !== undefined && { metadata: { agent } }),
  };
  if (interrupt === undefined) {
    const params = dialect.encodeSend({ message, blocking: true });
    return streamRun(request, asked, { operation: 'stream', params }, 1);
  }
  const { taskId: id } = interrupt;
  await answerTo(request, { operation: 'send', params: dialect.encodeSend({ message, blocking: false }) });
  const task = (await answerTo(request, { operation: 'get', params: { id } })) as unknown as Task;
  const sent = (task.history ?? []).filter(({ role }) => role === 'ROLE_USER');
  const turn = sent.findIndex(({ messageId }) => messageId === runId) + 1;
  return streamRun(request, asked, { operation: 'subscribe', params: { id }, cursor: BEGINNING }, turn);
}

async function streamRun(request: HttpRequest, asked: RunRequest, call: OperationCall, turn: number): Promise<undefined> {
  const { threadId, runId, messages, state } = asked;
  const encoder = runFrames(new RunEncoder({ threadId, runId, messages, state, turn }));
  await perform(request, call, { wrapSink: sse => new EncodedSink(sse, encoder) });
}

/** The run of a question that the user does not answer ends with its task. */
async function cancelQuestion(request: HttpRequest, { threadId, runId }: RunRequest, id: string): Promise<FastifyReply> {
  await answerTo(request, { operation: 'cancel', params: { id } }).catch(thrown => {
    if (!(thrown instanceof A2AError) || thrown.code !== 'TASK_NOT_CANCELABLE') throw thrown;
  });
  const started: AgUiEvent = { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' };
  const finished: AgUiEvent = { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'cancelled' } };
  return request.reply
    .type(`${SSE_CONTENT_TYPE}; charset=utf-8`)
    .header('cache-control', 'no-store')
    .send([started, finished].map(frame).join(''));
}

/** Runs an operation that answers with JSON. */
async function answerTo(request: HttpRequest, call: OperationCall): Promise<OperationAnswer> {
  let answer: OperationAnswer = null;
  // The page does not receive this answer, so it counts no sent bytes.
  const encode = (result: OperationAnswer) => {
    answer = result;
    return Buffer.alloc(0);
  };
  await perform(request, call, { encode });
  return answer;
}

async function perform(
  { server, http, reply }: HttpRequest,
  { operation, params, cursor }: OperationCall,
  more: Partial<Parameters<typeof operationRequest>[3]>,
): Promise<void> {
  const { tenant } = http.params as { tenant?: string };
  const understood = {
    ...{ binding: BINDING, dialect, params: { ...params, ...(tenant !== undefined && { tenant }) }, encode: encodeJson },
    framing: { before: '', after: '', failure: (error: A2AError) => httpJsonFailure(error) },
    ...(cursor !== undefined && { cursor }),
    ...more,
  };
  await runOperation(server, operation, operationRequest(server, http, reply, understood));
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

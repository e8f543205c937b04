import { A2AError, isTerminal, type JsonObject, type Task } from '@hopline/a2a/client';
import { FailedTry } from './failed-try.ts';
import { framesOf } from './frames.ts';
import type { CallOptions } from './notice.ts';
import { type StreamItem, StreamPosition } from './stream-position.ts';
import { notA2A, type Transport } from './transport.ts';
import { pause, type RetryLimits, Tries } from './tries.ts';

export type Begin =
  | /** A message, which is sent again unchanged until the first event of its task arrives. */ {
      operation: 'stream';
      params: JsonObject;
    }
  | { operation: 'subscribe'; taskId: string; cursor: string | undefined };

type ResumingStreamOptions = {
  transport: Transport;
  begin: Begin;
  retry: RetryLimits;
  silenceMsMax: number;
  call: CallOptions;
  /** Requests the current task, without retries. */
  get: (taskId: string) => Promise<Task>;
};

/**
 * Yields the events of a task, each once over any number of connections, until the task ends. A stream that began with a message
 * also ends when the task waits for input. Throws A2AError when the server rejects the request, or when the tries are used up.
 */
export async function* resumingStream(options: ResumingStreamOptions): AsyncGenerator<StreamItem, void, undefined> {
  const { transport, begin, retry, silenceMsMax, call } = options;
  const position =
    begin.operation === 'stream'
      ? new StreamPosition(undefined, undefined, true)
      : new StreamPosition(begin.taskId, begin.cursor, false);
  const tries = new Tries(retry);
  for (;;) {
    let failure: unknown;
    transport.streams += 1;
    try {
      let frames = 0;
      const hasAnswered = position.seen;
      const response = await connect(options, position);
      tries.opened(performance.now());
      noteOpened(call, response);
      for await (const frame of framesOf(response, transport.dialect, { silenceMsMax, signal: call.signal, hasAnswered })) {
        frames += 1;
        if ('event' in frame && frame.event === undefined) call.onNotice?.({ kind: 'skipped' });
        const items = position.accept(frame);
        // A snapshot after an unknown gap does not count as progress, because a server without cursors sends one on every connection.
        const [first] = items;
        if (first !== undefined && !('gap' in first && first.gap === 'unknown')) tries.progress();
        for (const item of items) {
          // A frame, and the frames of one chunk, may have arrived before the caller aborted.
          call.signal?.throwIfAborted();
          yield item;
        }
        if (position.ended) return;
      }
      if (frames === 0 && (await hasEnded(options, position))) return;
      throw new FailedTry(new A2AError('UNAVAILABLE', { detail: 'the stream ended before the task did' }));
    } catch (thrown) {
      failure = thrown;
    } finally {
      transport.streams -= 1;
    }
    if (position.seen && position.cursor !== undefined && isRefusedCursor(failure)) {
      // The server has sent this cursor, and an earlier state of its log was restored since: the stream continues with the current task.
      position.cursor = undefined;
      failure = new FailedTry(new A2AError('UNAVAILABLE', { detail: 'the server no longer knows the cursor of the last event' }));
    }
    const ended = await endedTask(options, position, failure);
    if (ended !== undefined) {
      yield { gap: 'unknown' };
      yield { cursor: undefined, event: { task: ended } };
      return;
    }
    await pause(tries, failure, call);
  }
}

function noteOpened({ onNotice }: CallOptions, { body }: Response): void {
  try {
    onNotice?.({ kind: 'opened' });
  } catch (thrown) {
    body?.cancel().catch(() => {});
    throw thrown;
  }
}

async function connect(
  { transport, begin, silenceMsMax, call }: ResumingStreamOptions,
  position: StreamPosition,
): Promise<Response> {
  const { taskId, cursor } = position;
  const request = { signal: call.signal, headMsMax: silenceMsMax, traceparent: call.traceparent, hasAnswered: position.seen };
  position.connect();
  if (begin.operation === 'stream' && !position.seen) return transport.post('stream', begin.params, request);
  if (taskId === undefined) throw notA2A('the stream broke before an event with a task id');
  return transport.post('subscribe', { id: taskId }, { ...request, cursor });
}

function isRefusedCursor(thrown: unknown): boolean {
  return thrown instanceof FailedTry && thrown.error.code === 'INVALID_PARAMS';
}

/** A server without cursors rejects a subscription to an ended task ([A2A 1.0] 3.1.6): the final task is requested instead. */
async function endedTask({ get }: ResumingStreamOptions, position: StreamPosition, thrown: unknown): Promise<Task | undefined> {
  const { taskId, cursor, seen } = position;
  const refused = thrown instanceof FailedTry && thrown.error.code === 'UNSUPPORTED_OPERATION';
  if (!refused || !seen || cursor !== undefined || taskId === undefined) return undefined;
  // If this request fails, the original error is reported.
  const task = await get(taskId).catch(() => undefined);
  return task !== undefined && isTerminal(task.status.state) ? task : undefined;
}

/** A subscription after the last event of a task ends without events. */
async function hasEnded({ get }: ResumingStreamOptions, { taskId }: StreamPosition): Promise<boolean> {
  return taskId !== undefined && isTerminal((await get(taskId)).status.state);
}

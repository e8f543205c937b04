import { A2AError, isTerminal, type JsonObject, type Task } from '@hopline/a2a';
import { FailedTry } from './failed-try.ts';
import { framesOf } from './frames.ts';
import type { CallOptions } from './notice.ts';
import { type StreamItem, StreamPosition } from './place.ts';
import { noA2A, type Transport } from './transport.ts';
import { pause, type RetryLimits, Tries } from './tries.ts';

export type Begin =
  | /** A message. Sent again, unchanged, until something of its task has come. */ { operation: 'stream'; params: JsonObject }
  | { operation: 'subscribe'; taskId: string; cursor: string | undefined };

export type ResumingStreamOptions = {
  transport: Transport;
  begin: Begin;
  retry: RetryLimits;
  silenceMsMax: number;
  call: CallOptions;
  /** The task as it is, asked once. */
  get: (taskId: string) => Promise<Task>;
};

/**
 * What follows in a task, over any number of connections, each event once, until the task has ended; a stream that began with a message also ends where the client has to answer.
 * Throws A2AError when the server refuses, or when tries in a row brought nothing.
 */
export async function* resumingStream(options: ResumingStreamOptions): AsyncGenerator<StreamItem, void, undefined> {
  const { transport, begin, retry, silenceMsMax, call } = options;
  const place =
    begin.operation === 'stream'
      ? new StreamPosition(undefined, undefined, true)
      : new StreamPosition(begin.taskId, begin.cursor, false);
  const tries = new Tries(retry);
  for (;;) {
    try {
      let frames = 0;
      const response = await connect(options, place);
      tries.opened(performance.now());
      for await (const frame of framesOf(response, transport.dialect, silenceMsMax)) {
        frames += 1;
        if ('event' in frame && frame.event === undefined) call.onNotice?.({ kind: 'skipped' });
        const items = place.take(frame);
        // The task as it is, once more, is no progress: a server without cursors says it at every connection.
        const [first] = items;
        if (first !== undefined && !('gap' in first && first.gap === 'unknown')) tries.progress();
        yield* items;
        if (place.ended) return;
      }
      if (frames === 0 && (await isOver(options, place))) return;
      throw new FailedTry(new A2AError('UNAVAILABLE', { detail: 'the stream ended before the task did' }));
    } catch (thrown) {
      const ended = await endedMeanwhile(options, place, thrown);
      if (ended !== undefined) {
        yield { gap: 'unknown' };
        yield { cursor: undefined, event: { task: ended } };
        return;
      }
      await pause(tries, thrown, call);
    }
  }
}

async function connect(
  { transport, begin, silenceMsMax, call }: ResumingStreamOptions,
  place: StreamPosition,
): Promise<Response> {
  const { taskId, cursor } = place;
  const request = { signal: call.signal, headMsMax: silenceMsMax };
  place.connect();
  if (begin.operation === 'stream' && !place.seen) return transport.post('stream', begin.params, request);
  if (taskId === undefined) throw noA2A('the stream broke, and its events name no task to continue');
  return transport.post('subscribe', { id: taskId }, { ...request, cursor });
}

/** A server without cursors refuses to continue a task that ended while the connection was broken ([A2A 1.0] 3.1.6): how it ended is asked for. */
async function endedMeanwhile({ get }: ResumingStreamOptions, place: StreamPosition, thrown: unknown): Promise<Task | undefined> {
  const { taskId, cursor, seen } = place;
  const refused = thrown instanceof FailedTry && thrown.error.code === 'UNSUPPORTED_OPERATION';
  if (!refused || !seen || cursor !== undefined || taskId === undefined) return undefined;
  // What the server said first counts, if it does not say more.
  const task = await get(taskId).catch(() => undefined);
  return task !== undefined && isTerminal(task.status.state) ? task : undefined;
}

/** A subscription to what comes after the last event of a task has nothing to say, and ends. */
async function isOver({ get }: ResumingStreamOptions, { taskId }: StreamPosition): Promise<boolean> {
  return taskId !== undefined && isTerminal((await get(taskId)).status.state);
}

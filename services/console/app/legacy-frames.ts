import { decodeSse } from '@hopline/a2a';
import { chunksOf, isFinal, SILENCE_MS_MAX } from './follow-task.ts';

const RECONNECT_MS = 2_000;

type LegacyFrame = { cursor: string; data: string };

type LegacyOptions = {
  /** Opens the stream after a cursor. */
  open: (cursor: string) => Promise<Pick<Response, 'body'>>;
  /** Whether the task has ended, with this cursor if it is known. */
  isEnd: (cursor: string | undefined) => boolean;
  sleep: (ms: number, signal: AbortSignal, onOnline: () => void) => Promise<void>;
  signal: AbortSignal;
};

/**
 * The frames of a task as a client of A2A 0.3 receives them, from its beginning until it ends, over as many connections as needed. Throws the error of
 * `open` when another try cannot help.
 */
export async function* legacyFrames({ open, isEnd, sleep, signal }: LegacyOptions): AsyncGenerator<LegacyFrame> {
  for (let cursor = '0.0'; ; ) {
    let isEmpty = true;
    try {
      const { body } = await open(cursor);
      if (body === null) return;
      for await (const { id = '', event, data } of decodeSse(chunksOf(body, SILENCE_MS_MAX))) {
        if (event === 'drain') break;
        isEmpty = false;
        cursor = id || cursor;
        yield { cursor: id, data };
      }
      if (isEnd(isEmpty ? undefined : cursor)) return;
    } catch (error) {
      if (signal.aborted || isFinal(error)) throw error;
    }
    await sleep(RECONNECT_MS, signal, () => {});
  }
}

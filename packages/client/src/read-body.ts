import { A2AError } from '@hopline/a2a/client';
import { FailedTry } from './failed-try.ts';
import { TIMER_MS_MAX } from './limits.ts';

/** Largest response body: a task, whose turn may have 16 MiB of text, twice in some profiles and escaped in JSON. */
export const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;

/** How a body is read. */
export type BodyOptions = {
  /** Bound of each read. */
  silenceMsMax: number;
  /** Closes the connection when it aborts. */
  signal: AbortSignal | undefined;
};

/**
 * Yields the chunks of a body. Throws FailedTry when the connection breaks, or when a pending read takes longer than
 * `silenceMsMax`, and the reason of the signal when it aborts.
 * Leaving the loop closes the connection. Uses a reader because some browsers cannot iterate streams.
 */
export async function* chunksOf(
  body: ReadableStream<Uint8Array>,
  { silenceMsMax, signal }: BodyOptions,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const close = () => void reader.cancel().catch(() => {});
  let fail: (error: unknown) => void = () => {};
  // Closes the connection even while the caller reads no further. The signal of the request ends with its head.
  const onAbort = () => {
    fail(signal?.reason);
    close();
  };
  signal?.addEventListener('abort', onAbort);
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await new Promise<Awaited<ReturnType<typeof reader.read>>>((resolve, reject) => {
        fail = reject;
        const onSilence = () => reject(broken(`the server was silent for ${silenceMsMax} ms`));
        const timer = setTimeout(onSilence, Math.min(silenceMsMax, TIMER_MS_MAX));
        const stop = () => clearTimeout(timer);
        reader
          .read()
          .then(resolve, thrown => reject(broken('the connection broke', thrown)))
          .then(stop, stop);
      });
      if (done) return;
      yield value;
    }
  } finally {
    signal?.removeEventListener('abort', onAbort);
    close();
  }
}

/** A body as text. Throws like chunksOf, and INVALID_AGENT_RESPONSE for a body of more than `bytesMax`. */
export async function bodyText(
  response: Response,
  { bytesMax = RESPONSE_BYTES_MAX, ...options }: BodyOptions & { bytesMax?: number },
): Promise<string> {
  // The `fetch` of React Native has no streams.
  const { body } = response as { body?: typeof response.body };
  if (body === undefined) return response.text();
  if (body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of chunksOf(body, options)) {
    bytes += chunk.length;
    if (bytes > bytesMax)
      throw new A2AError('INVALID_AGENT_RESPONSE', { detail: `the response is larger than ${bytesMax} bytes`, retryable: false });
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function broken(detail: string, cause?: unknown): FailedTry {
  return new FailedTry(new A2AError('UNAVAILABLE', { detail, cause }));
}

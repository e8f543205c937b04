import { A2AError } from '@hopline/a2a/client';
import { FailedTry } from './failed-try.ts';

/** Largest response body: a task, whose turn may have 16 MiB of text, twice in some profiles and escaped in JSON. */
export const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Yields the chunks of a body. Throws FailedTry when the connection breaks, or when a pending read takes longer than
 * `silenceMsMax`.
 * Leaving the loop closes the connection. Uses a reader because some browsers cannot iterate streams.
 */
export async function* chunksOf(body: ReadableStream<Uint8Array>, silenceMsMax: number): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await within(silenceMsMax, reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** A body as text. Throws FailedTry like chunksOf, and INVALID_AGENT_RESPONSE for a body of more than `bytesMax`. */
export async function bodyText(response: Response, silenceMsMax: number, bytesMax = RESPONSE_BYTES_MAX): Promise<string> {
  if (response.body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of chunksOf(response.body, silenceMsMax)) {
    bytes += chunk.length;
    if (bytes > bytesMax)
      throw new A2AError('INVALID_AGENT_RESPONSE', { detail: `the response is larger than ${bytesMax} bytes`, retryable: false });
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

async function within<T>(ms: number, reading: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(broken(`the server was silent for ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([reading, silence]);
  } catch (thrown) {
    throw thrown instanceof FailedTry ? thrown : broken('the connection broke', thrown);
  } finally {
    clearTimeout(timer);
  }
}

function broken(detail: string, cause?: unknown): FailedTry {
  return new FailedTry(new A2AError('UNAVAILABLE', { detail, cause }));
}

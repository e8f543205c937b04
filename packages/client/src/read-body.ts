import { A2AError } from '@hopline/a2a';
import { FailedTry } from './failed-try.ts';

/** Bytes of one whole answer: a task with all it said. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Chunks of a body as they come. Throws FailedTry when the connection breaks, and when nothing comes for `silenceMsMax` while somebody waits. Leaving the loop closes the connection.
 * A reader, because browsers exist in which streams cannot be iterated.
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

/** A whole body as text. Throws FailedTry as above, and INVALID_AGENT_RESPONSE for one of more than `bytesMax`. */
export async function textOf(response: Response, silenceMsMax: number, bytesMax = ANSWER_BYTES_MAX): Promise<string> {
  if (response.body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of chunksOf(response.body, silenceMsMax)) {
    bytes += chunk.length;
    if (bytes > bytesMax)
      throw new A2AError('INVALID_AGENT_RESPONSE', { detail: `the answer is longer than ${bytesMax} bytes`, retryable: false });
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

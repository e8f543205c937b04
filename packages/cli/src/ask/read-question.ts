import { addAbortSignal, type Readable } from 'node:stream';
import { UsageError } from '../command/usage-error.ts';

/** Largest question from standard input; bytes. A server accepts requests of about 1 MiB. */
export const QUESTION_BYTES_MAX = 1_000_000;

/** Reads standard input unchanged to its end. Throws UsageError when it is empty or white space alone, too large or not UTF-8. */
export async function readQuestion(input: Readable, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of addAbortSignal(signal, input) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > QUESTION_BYTES_MAX) throw new UsageError(`the text is larger than ${QUESTION_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  const text = utf8(Buffer.concat(chunks));
  if (text.trim() === '')
    throw new UsageError(`nothing to ask: standard input ${text === '' ? 'is empty' : 'has only white space'}`);
  return text;
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UsageError('standard input is not UTF-8');
  }
}

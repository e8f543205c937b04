import { addAbortSignal, type Readable } from 'node:stream';
import { UsageError } from './usage-error.ts';

/** Bytes of a question from standard input: about what a server takes in one request (1 MiB). */
export const QUESTION_BYTES_MAX = 1_000_000;

/** Standard input as it is, to its end. Throws UsageError for nothing, too much, and what is not UTF-8. */
export async function readQuestion(input: Readable, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of addAbortSignal(signal, input) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > QUESTION_BYTES_MAX) throw new UsageError(`a text has at most ${QUESTION_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  const text = utf8(Buffer.concat(chunks));
  if (text === '') throw new UsageError('there is nothing to ask: standard input is empty');
  return text;
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UsageError('standard input is not UTF-8');
  }
}

import { createReadStream } from 'node:fs';
import { UsageError } from './usage-error.ts';

/** The bytes of a file that the user named. Throws UsageError when it cannot be read, for example because it is a folder. */
export async function* bytesOfFile(path: string): AsyncGenerator<Uint8Array, void> {
  try {
    yield* createReadStream(path) as AsyncIterable<Uint8Array>;
  } catch (thrown) {
    throw new UsageError(`${path} cannot be read (${codeOfFault(thrown)})`);
  }
}

/** The system's code of a file error, such as ENOSPC. */
export function codeOfFault(thrown: unknown): string {
  const { code } = thrown as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : 'unknown error';
}

import { A2AError, type Message, type Metadata } from '@hopline/a2a';
import type { A2AServer } from '../a2a-server.ts';

/** Bytes of a record beside what the client said: ids, owner, earlier tasks of the context, the aggregate of a task that begins. */
const ENVELOPE_BYTES = 16 * 1024;

/**
 * Throws REQUEST_TOO_LARGE for a message that the log could not take: as an input, and as the first fact of its task, which has the metadata twice. Before anything is claimed for it: the same
 * message id must be free for a shorter one. An input that makes no fact would be read for ever.
 */
export function assertFitsRecord({ log }: A2AServer, message: Message, metadata: Metadata | undefined): void {
  const bytes = jsonBytes(message) + 2 * jsonBytes(metadata ?? {}) + ENVELOPE_BYTES;
  if (bytes > log.recordBytesMax) throw new A2AError('REQUEST_TOO_LARGE', { detail: 'the message is larger than the log takes' });
}

function jsonBytes(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}

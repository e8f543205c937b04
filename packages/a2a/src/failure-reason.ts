import { textOf } from './fold.ts';
import type { Metadata, TaskStatus } from './types.ts';

/** Why a task failed, was rejected or waits: the message of its status, otherwise the reason that Hopline keeps in its metadata. */
export function failureReason({ message }: TaskStatus, metadata: Metadata | undefined): string {
  const text = message === undefined ? '' : textOf(message.parts).trim();
  return text === '' && typeof metadata?.reason === 'string' ? metadata.reason : text;
}

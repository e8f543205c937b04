import { type Metadata, type TaskStatus, textOf } from '@hopline/a2a';

/** Why a task failed, was rejected or waits: the message of its status, else the reason that Hopline keeps in its metadata. */
export function reasonOf({ message }: TaskStatus, metadata: Metadata | undefined): string {
  const text = message === undefined ? '' : textOf(message.parts).trim();
  return text === '' && typeof metadata?.reason === 'string' ? metadata.reason : text;
}

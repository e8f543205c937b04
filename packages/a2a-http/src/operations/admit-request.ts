import { A2AError, type SendRequest } from '@hopline/a2a';
import type { Door } from '../door.ts';
import { fromLog } from '../log-faults.ts';
import { type Admission, admitFirst, admitNext } from './admit-message.ts';
import { admitOwned } from './admit-owned.ts';
import { ownMessage, ownMetadata } from './reserved-metadata.ts';

/** Decides which task a message belongs to, and refuses what does not fit. Nothing is said to the log yet. */
export async function admitRequest(door: Door, request: SendRequest): Promise<Admission> {
  if (request.push !== undefined) throw new A2AError('PUSH_NOTIFICATION_NOT_SUPPORTED');
  const message = ownMessage(request.message);
  const metadata = ownMetadata(request.metadata);
  try {
    if (request.ownTaskId !== undefined) return await admitOwned(door, request.ownTaskId, message, metadata);
    if (message.taskId !== undefined) return await admitNext(door, message, message.taskId, metadata);
    return await admitFirst(door, message, metadata);
  } catch (thrown) {
    throw fromLog(thrown);
  }
}

import type { Message } from '@hopline/a2a';
import type { Role } from './subjects.ts';
import { titleCase } from './title-case.ts';

/** Member of a message's metadata that marks a queue notice, the message of a status that shows how many requests are ahead of a turn. */
const QUEUE_KEY = 'queue';

/**
 * Content of a queue notice for programs. `ahead`: number of requests that wait before this one, estimated from the position of the item.
 * `isAway`: no process of the agent is registered.
 */
type QueuePlace = { role: Role; ahead: number; isAway?: true };

/** The message of a turn that waits for a free slot. `id` is unique in the task for each place. */
export function queueNotice(id: string, place: QueuePlace): Message {
  const text = queueText(place);
  return { messageId: id, role: 'ROLE_AGENT', parts: [{ text }], metadata: { [QUEUE_KEY]: { ...place } } };
}

/** The sentence of a queue notice, for people. */
export function queueText({ role, ahead, isAway }: QueuePlace): string {
  if (isAway) return `⏳ Agent ${titleCase(role.replace(/^agent\./, ''))} is not available yet.\n`;
  const busy = role === 'supervisor' ? 'a free supervisor' : `a free slot of ${titleCase(role.replace(/^agent\./, ''))}`;
  const place = ahead === 0 ? 'next in the queue' : ahead === 1 ? '1 request is ahead' : `about ${ahead} requests are ahead`;
  return `⏳ Waiting for ${busy}: ${place}.\n`;
}

/** Whether a message only reports that a turn waits for a slot. Such a message is neither part of the answer nor of a history. */
export function isQueueNotice(message: Pick<Message, 'metadata'> | undefined): boolean {
  const place = message?.metadata?.[QUEUE_KEY];
  return typeof place === 'object' && place !== null && 'ahead' in place;
}

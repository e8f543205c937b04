import type { Role } from '@hopline/events';
import { consumerName, QUEUES } from './names.ts';
import type { Delivery } from './pull-inbox.ts';

/**
 * A worker's entry in the bucket of requeues: the items that it runs. When it is dead, another worker of the role queues them
 * again, so the entry has the numbers by which the server identifies each delivery. PROTOCOL.md section 6.1.
 */
export type WorkerEntry = {
  queues: ClaimedQueue[];
  /** The worker that queues the items again. The owner of the entry has lost all of them. */
  takenBy?: string;
};

/**
 * Items of one queue. `acks`: the subject of acknowledgements, with PLACE instead of the three numbers of a delivery. `items`: these
 * numbers, one item after the other: deliveries, stream sequence, consumer sequence.
 */
type ClaimedQueue = { acks: string; items: number[] };

const PLACE = '#';
const NUMBERS = 3;

/** An entry takes at most about 24 bytes for each item, and NATS stores 1 MiB by default. Items above this number are kept alive one by one. */
export const CLAIMED_ITEMS_MAX = 32_768;

export function workerKey(role: Role, worker: string): string {
  return `${workersKey(role)}.${worker}`;
}

/** The keys of workers have the form of those of items (`<role>.<taskId>.<seq>`), so that the same permission covers them. */
export function workersKey(role: Role): string {
  return `${role}.worker`;
}

export function isWorkerEntry(value: unknown): value is WorkerEntry {
  const { queues, takenBy } = (value ?? {}) as Partial<WorkerEntry>;
  const isQueue = (queue: Partial<ClaimedQueue> | null) =>
    typeof queue?.acks === 'string' && Array.isArray(queue.items) && queue.items.every(Number.isSafeInteger);
  return Array.isArray(queues) && queues.every(isQueue) && (takenBy === undefined || typeof takenBy === 'string');
}

export function workerEntry(deliveries: Iterable<Delivery>): WorkerEntry {
  const queues = new Map<string, ClaimedQueue>();
  for (const delivery of deliveries) {
    const tokens = delivery.msg.reply!.split('.');
    const at = numbersAt(tokens);
    const consumer = tokens.slice(0, at).join('.');
    // The time and the count after the numbers differ between deliveries, and the server ignores them.
    const queue = queues.get(consumer) ?? { acks: [consumer, PLACE, ...tokens.slice(at + NUMBERS)].join('.'), items: [] };
    queue.items.push(delivery.deliveries, delivery.seq, delivery.consumerSeq);
    queues.set(consumer, queue);
  }
  return { queues: [...queues.values()] };
}

/** The acknowledgement subjects of the claimed items. Subjects that do not belong to a queue of the role are left out. */
export function ackSubjects({ queues }: WorkerEntry, stream: string, role: Role): string[] {
  return queues.flatMap(({ acks, items }) => {
    if (!isAcksOf(acks, stream, role)) return [];
    const deliveries = Array.from({ length: Math.floor(items.length / NUMBERS) }, (_, item) => item * NUMBERS);
    return deliveries.map(from => acks.replace(PLACE, items.slice(from, from + NUMBERS).join('.')));
  });
}

/** Whether an entry names a later delivery of an item. */
export function namesLater({ queues }: WorkerEntry, { seq, deliveries }: Pick<Delivery, 'seq' | 'deliveries'>): boolean {
  return queues.some(({ items }) =>
    items.some((value, at) => at % NUMBERS === 1 && value === seq && items[at - 1]! > deliveries),
  );
}

function isAcksOf(acks: string, stream: string, role: Role): boolean {
  const tokens = acks.split('.');
  const place = tokens.indexOf(PLACE);
  const isAck = tokens[0] === '$JS' && tokens[1] === 'ACK' && tokens[place - 2] === stream;
  return isAck && QUEUES.some(queue => tokens[place - 1] === consumerName(role, queue));
}

/** `$JS.ACK.<stream>.<consumer>.<numbers>…`, or with domain and account after ACK: the forms that parseDelivery reads. */
function numbersAt(tokens: readonly string[]): number {
  return tokens.length === 9 ? 4 : 6;
}

import type { Role } from '@hopline/events';
import { withinMs } from '@hopline/lifecycle';
import {
  backoffMs,
  type DeliveryBounds,
  deliveriesMax,
  type Job,
  newestForJob,
  purposeOf,
  REDELIVERY_MS_BASE,
  REDELIVERY_MS_MAX,
  REDELIVERY_MS_MIN,
  Requeued,
  Superseded,
} from '@hopline/log';
import { type Msg, nanos } from '@nats-io/nats-core';
import { decodeTrace, decodeWork, isLaterVersion } from './codec.ts';
import type { Connection } from './connection.ts';
import { type Delivery, parseDelivery } from './delivery.ts';
import type { RequeueCounts } from './requeues.ts';
import { retry } from './retry.ts';

const DONE = '+ACK';
const TERMINATED = '+TERM';
const NAK = '-NAK';
const IN_PROGRESS = '+WPI';
/** Keep-alives within ackWaitMs, so that one or two may be lost. */
const KEEP_ALIVES_PER_ACK_WAIT = 3;
const ACK_TIMEOUT_MS = 2_000;
/** Time limit for confirming `+ACK`. A job whose ack is not confirmed may run twice. */
const DONE_TIMEOUT_MS = 10_000;
/** Time limit to count a requeue: two tries of a publish, and well within the drain time of a service. */
const REQUEUE_COUNT_MS_MAX = 5_000;

export type ItemOptions = DeliveryBounds & {
  role: Role;
  requeueCounts: RequeueCounts;
  ackWaitMs: number;
  ended: AbortSignal;
  /** Items whose handlers run in this process, by stream sequence. */
  running: RunningItems;
};

/** The newest delivery of each item, which keep-alives and acks refer to. */
export type RunningItems = Map<number, Delivery>;

/** Runs the handler on one delivered item and settles it. Never rejects. */
export async function runItem(
  connection: Connection,
  msg: Msg,
  options: ItemOptions,
  handler: (job: Job) => Promise<void>,
): Promise<void> {
  const delivery = parseDelivery(msg);
  if (!delivery) return;
  const work = decodeWork(msg.data);
  if (!work) {
    connection.onEvent({ type: 'undecodable', where: 'work' });
    // In a rolling update, a worker of the later version takes the item. A delivery that does not begin does not count as an attempt.
    if (isLaterVersion(msg.data)) nak(connection, delivery, options, REDELIVERY_MS_MAX);
    else respond(connection, msg, TERMINATED);
    return;
  }
  const { running } = options;
  const { seq } = delivery;
  if (running.has(seq)) {
    // The handler of an earlier delivery still runs: its keep-alives were lost while the server was unavailable. It continues with the new
    // delivery.
    running.set(seq, delivery);
    respond(connection, msg, IN_PROGRESS);
    return;
  }
  running.set(seq, delivery);
  const newest = () => running.get(seq) ?? delivery;
  const stopKeepAlive = startKeepAlive(connection, newest, options.ackWaitMs);
  let requeues = 0;
  try {
    if (options.ended.aborted) throw new Requeued('the worker is stopping');
    requeues = await requeuesBefore(delivery, work.taskId, options);
    const purpose = purposeOf(delivery.deliveries, requeues, options);
    if (purpose === 'dead') return nak(connection, delivery, options, 0);
    const count = { attempt: delivery.deliveries, requeues, exhausted: purpose === 'settle' };
    const known = newestForJob(work, delivery.deliveries, delivery.storedAt);
    const { role, requeueCounts } = options;
    const isTakenOver = () => requeueCounts.hasBegunAfter({ role, taskId: work.taskId, seq }, delivery.deliveries);
    await handler({ work, item: seq, ...count, ...known, isTakenOver, ...decodeTrace(msg.headers) });
    // Keep-alives continue until the ack is confirmed, so that the item does not go to another worker during a slow confirmation.
    await confirmDone(connection, newest, options);
  } catch (error) {
    if (error instanceof Superseded) return;
    if (error instanceof Requeued) {
      await countRequeue(delivery, options, work.taskId);
      nak(connection, newest(), options, 0);
    } else nak(connection, newest(), options, retryWaitMs(newest().deliveries - requeues, options));
  } finally {
    stopKeepAlive();
    running.delete(seq);
  }
}

async function requeuesBefore({ deliveries, seq }: Delivery, taskId: string, options: ItemOptions): Promise<number> {
  const { role, requeueCounts, attemptsMax, requeuesMax } = options;
  if (deliveries === 1) return 0;
  try {
    return Math.min(await requeueCounts.begin({ role, taskId, seq }, deliveries), requeuesMax);
  } catch (error) {
    // After this many deliveries the attempts are exhausted whatever the count is, because the task must end even if the bucket is
    // unreadable.
    if (deliveries > attemptsMax + requeuesMax) return requeuesMax;
    throw error;
  }
}

function startKeepAlive(connection: Connection, newest: () => Delivery, ackWaitMs: number): () => void {
  const timer = setInterval(() => respond(connection, newest().msg, IN_PROGRESS), ackWaitMs / KEEP_ALIVES_PER_ACK_WAIT);
  const stop = () => {
    clearInterval(timer);
    connection.closed.removeEventListener('abort', stop);
  };
  connection.closed.addEventListener('abort', stop, { once: true });
  return stop;
}

async function confirmDone(connection: Connection, newest: () => Delivery, { role }: ItemOptions): Promise<void> {
  const confirm = () => connection.nc.request(newest().msg.reply!, DONE, { timeout: ACK_TIMEOUT_MS });
  await retry(connection, `the ack of an item of ${role}`, confirm, { timeoutMs: DONE_TIMEOUT_MS }).catch(() => {});
}

/**
 * Counts the requeue before the item is free, for the delivery with which the handler began. Later deliveries did not run the handler; the
 * next one that begins counts them. If the count cannot be written, the delivery counts as an attempt, as it does after a crash.
 */
async function countRequeue({ seq, deliveries }: Delivery, { role, requeueCounts }: ItemOptions, taskId: string): Promise<void> {
  await withinMs(requeueCounts.increment({ role, taskId, seq }, deliveries), REQUEUE_COUNT_MS_MAX).catch(() => {});
}

function retryWaitMs(failures: number, { ended }: ItemOptions): number {
  return ended.aborted ? 0 : backoffMs(failures, REDELIVERY_MS_BASE, REDELIVERY_MS_MAX, REDELIVERY_MS_MIN);
}

/**
 * Asks for another delivery after `waitMs`. After the last delivery the server keeps the item as a dead
 * letter.
 */
function nak(connection: Connection, { msg, deliveries }: Delivery, options: ItemOptions, waitMs: number): void {
  if (deliveries >= deliveriesMax(options)) connection.onEvent({ type: 'dead-letter', role: options.role });
  respond(connection, msg, waitMs > 0 ? `${NAK} ${JSON.stringify({ delay: nanos(Math.ceil(waitMs)) })}` : NAK);
}

/** Not confirmed: if the response is lost, the item is delivered again after ackWaitMs. */
function respond(connection: Connection, msg: Msg, response: string): void {
  if (msg.reply) connection.send(msg.reply, response);
}

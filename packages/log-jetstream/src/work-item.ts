import type { Role } from '@hopline/events';
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
import { withinMs } from '@hopline/telemetry';
import { decodeTrace, decodeWork, isLaterWork } from './codec.ts';
import type { Connection } from './connection.ts';
import { DONE, inProgress, later, returned, terminate } from './item-replies.ts';
import { headersOf } from './message-headers.ts';
import { CLAIM_MS } from './options.ts';
import type { Delivery } from './pull-inbox.ts';
import type { RequeueCounts } from './requeue-counts.ts';
import { retry } from './retry.ts';
import type { RunningItems } from './running-items.ts';

const ACK_TIMEOUT_MS = 2_000;
/**
 * How long an item keeps its slot until `+ACK` is confirmed. After this time the ack of a claimed item is still repeated until the
 * claim would end. Otherwise the item of a finished job would stay in the queue until then, and run again (simulator seed 40742).
 */
const DONE_TIMEOUT_MS = 10_000;
/** Time limit to count a requeue: two tries of a publish, and well within the drain time of a service. */
const REQUEUE_COUNT_MS_MAX = 5_000;

export type ItemOptions = DeliveryBounds & {
  role: Role;
  requeueCounts: RequeueCounts;
  unclaimedWaitMs: number;
  ended: AbortSignal;
  running: RunningItems;
  /** Whether another worker has claimed a later delivery of an item. */
  isClaimedElsewhere: (delivery: Delivery) => Promise<boolean>;
};

/** Runs the handler on one delivered item and settles it. Never rejects. */
export async function runItem(
  connection: Connection,
  delivery: Delivery,
  options: ItemOptions,
  handler: (job: Job) => Promise<void>,
): Promise<void> {
  const { msg, seq } = delivery;
  const work = decodeWork(msg.data);
  if (!work) {
    connection.onEvent({ type: 'undecodable', where: 'work' });
    // In a rolling update, a worker of the later version takes the item. A delivery that does not begin does not count as an attempt.
    if (isLaterWork(msg.data)) await returnItem(connection, delivery, options, REDELIVERY_MS_MAX);
    else terminate(connection, msg);
    return;
  }
  const { running } = options;
  if (running.has(delivery)) {
    // The handler of an earlier delivery still runs: its keep-alives were lost while the server was unavailable. It continues with the new
    // delivery.
    running.add(delivery);
    inProgress(connection, msg);
    await loseTakenOver(delivery, work.taskId, options);
    return;
  }
  running.add(delivery);
  const newest = () => running.newest(delivery) ?? delivery;
  let requeues = 0;
  let isConfirmed = true;
  try {
    if (options.ended.aborted) throw new Requeued('the worker is stopping');
    requeues = await requeuesBefore(delivery, work.taskId, options);
    const purpose = purposeOf(delivery.deliveries, requeues, options);
    if (purpose === 'dead') return await returnItem(connection, delivery, options, 0);
    const count = { attempt: delivery.deliveries, requeues, exhausted: purpose === 'settle' };
    const known = newestForJob(work, delivery.deliveries, delivery.storedAt);
    const { role, requeueCounts } = options;
    const isTakenOver = () => requeueCounts.hasBegunAfter({ role, taskId: work.taskId, seq }, delivery.deliveries);
    await handler({ work, item: seq, ...count, ...known, isTakenOver, ...decodeTrace(headersOf(msg)) });
    // Keep-alives continue until the ack is confirmed, so that the item does not go to another worker during a slow confirmation.
    isConfirmed = await confirmDone(connection, delivery, options, DONE_TIMEOUT_MS);
  } catch (error) {
    // This worker must not return an item that another worker has queued again.
    if (running.isLost(delivery) || running.isReplaced(delivery)) return;
    if (error instanceof Superseded) return await release(connection, newest(), options);
    if (error instanceof Requeued) {
      await countRequeue(delivery, options, work.taskId);
      await returnItem(connection, newest(), options, 0);
    } else await returnItem(connection, newest(), options, retryWaitMs(newest().deliveries - requeues, options));
  } finally {
    if (isConfirmed || !running.isClaimed(delivery)) running.remove(delivery);
    else void confirmDone(connection, delivery, options, CLAIM_MS).finally(() => running.remove(delivery));
  }
}

/**
 * A superseded worker may have claimed the item while another one had it already. If that one is dead and had not claimed the
 * item itself, the item is due after the ack wait, not at the end of the claim.
 */
async function release(connection: Connection, delivery: Delivery, options: ItemOptions): Promise<void> {
  const { running, unclaimedWaitMs, isClaimedElsewhere } = options;
  if (!running.isClaimed(delivery)) return;
  const isHeld = await isClaimedElsewhere(delivery).catch(() => true);
  if (!isHeld) later(connection, delivery.msg, unclaimedWaitMs);
}

/** A delivery may arrive late, after the path of this worker was interrupted, when another worker has taken the item. */
async function loseTakenOver(delivery: Delivery, taskId: string, { role, requeueCounts, running }: ItemOptions): Promise<void> {
  const { seq, deliveries } = delivery;
  const isTakenOver = await requeueCounts.hasBegunAfter({ role, taskId, seq }, deliveries).catch(() => false);
  if (isTakenOver) running.lose(delivery);
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

/** Whether the server confirmed the ack within `timeoutMs`, or has lost the item. */
async function confirmDone(
  connection: Connection,
  delivery: Delivery,
  { role, running }: ItemOptions,
  timeoutMs: number,
): Promise<boolean> {
  const confirm = async () => {
    if (running.isReplaced(delivery)) return;
    const { msg } = running.newest(delivery) ?? delivery;
    await connection.nc.request(msg.reply!, DONE, { timeout: timeoutMs });
  };
  return await retry(connection, `the ack of an item of ${role}`, confirm, { timeoutMs }).then(
    () => true,
    () => false,
  );
}

/**
 * Counts the requeue before the item is free, for the delivery with which the handler began. The handler did not run for later deliveries; the
 * next one that begins counts them. If the count cannot be written, the delivery counts as an attempt, as it does after a crash.
 */
async function countRequeue({ seq, deliveries }: Delivery, { role, requeueCounts }: ItemOptions, taskId: string): Promise<void> {
  await withinMs(requeueCounts.increment({ role, taskId, seq }, deliveries), REQUEUE_COUNT_MS_MAX).catch(() => {});
}

function retryWaitMs(failures: number, { ended }: ItemOptions): number {
  return ended.aborted ? 0 : backoffMs(failures, REDELIVERY_MS_BASE, REDELIVERY_MS_MAX, REDELIVERY_MS_MIN);
}

/**
 * Asks for another delivery after `waitMs`. After the last delivery the server keeps the item as a dead letter. If the request is lost, the
 * server waits for the rest of the ack wait, or of the claim, which is long: the return of a claimed item is repeated until it is confirmed.
 */
async function returnItem(connection: Connection, delivery: Delivery, options: ItemOptions, waitMs: number): Promise<void> {
  if (delivery.deliveries >= deliveriesMax(options)) connection.onEvent({ type: 'dead-letter', role: options.role });
  if (!options.running.isClaimed(delivery)) {
    later(connection, delivery.msg, waitMs);
    return;
  }
  // A worker that stops waits for the confirmation, because its connection closes with it.
  if (options.ended.aborted) await confirmReturn(connection, delivery, options, { waitMs, timeoutMs: DONE_TIMEOUT_MS });
  else void confirmReturn(connection, delivery, options, { waitMs, timeoutMs: CLAIM_MS });
}

async function confirmReturn(
  connection: Connection,
  delivery: Delivery,
  { role, running, isClaimedElsewhere }: ItemOptions,
  { waitMs, timeoutMs }: { waitMs: number; timeoutMs: number },
): Promise<void> {
  const hasNewer = async () => {
    const newest = running.newest(delivery) ?? delivery;
    return newest !== delivery || (await isClaimedElsewhere(delivery));
  };
  let isRepeated = false;
  const request = async () => {
    // Only the confirmation was lost: a repetition would return the newer delivery.
    if (running.isReplaced(delivery) || (isRepeated && (await hasNewer()))) return;
    isRepeated = true;
    await connection.nc.request(delivery.msg.reply!, returned(waitMs), { timeout: ACK_TIMEOUT_MS });
  };
  await retry(connection, `the return of an item of ${role}`, request, { timeoutMs }).catch(() => {});
}

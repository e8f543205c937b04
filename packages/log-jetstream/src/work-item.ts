import type { Role } from '@hopline/events';
import { withinMs } from '@hopline/lifecycle';
import {
  backoffMs,
  type DeliveryBounds,
  deliveriesMax,
  type Job,
  purposeOf,
  REDELIVERY_MS_BASE,
  REDELIVERY_MS_MAX,
  REDELIVERY_MS_MIN,
  Requeued,
  Superseded,
} from '@hopline/log';
import { type Msg, nanos } from '@nats-io/nats-core';
import { decodeTrace, decodeWork } from './codec.ts';
import type { Connection } from './connection.ts';
import { type Delivery, parseDelivery } from './delivery.ts';
import type { HandBacks } from './requeues.ts';
import { retry } from './retry.ts';

const DONE = '+ACK';
const TERMINATED = '+TERM';
const GIVEN_BACK = '-NAK';
const STILL_WORKING = '+WPI';
/** `working` is said that many times within ackWaitMs: one or two may be lost. */
const WORKING_PER_ACK_WAIT = 3;
const ACK_TIMEOUT_MS = 2_000;
/** How long the end of an item is repeated until the server has confirmed it. An unconfirmed end is a job done twice. */
const DONE_TIMEOUT_MS = 10_000;
/** How long a worker that stops waits until its hand-back is counted: two tries of a publish, and well within what a service has for its end. */
const HAND_BACK_MS_MAX = 5_000;

export type ItemOptions = DeliveryBounds & {
  role: Role;
  handBacks: HandBacks;
  ackWaitMs: number;
  ended: AbortSignal;
  /** Items whose handlers run in this process, by stream sequence. */
  running: RunningItems;
};

/** The newest delivery of each: keep-alives and the end are said of that one. */
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
    say(connection, msg, TERMINATED);
    return;
  }
  const { running } = options;
  const { seq } = delivery;
  if (running.has(seq)) {
    // Keep-alives were lost (the server was away), not the handler: it goes on under the new delivery. A second one beside it would be its own rival.
    running.set(seq, delivery);
    say(connection, msg, STILL_WORKING);
    return;
  }
  running.set(seq, delivery);
  const newest = () => running.get(seq) ?? delivery;
  const stopHeartbeat = startHeartbeat(connection, newest, options.ackWaitMs);
  let requeues = 0;
  try {
    if (options.ended.aborted) throw new Requeued('not taking any more');
    requeues = await handedBackBefore(delivery, work.taskId, options);
    const purpose = purposeOf(delivery.deliveries, requeues, options);
    if (purpose === 'dead') return giveBack(connection, delivery, options, 0);
    const about = { attempt: delivery.deliveries, requeues, exhausted: purpose === 'settle' };
    await handler({ work, ...about, ...decodeTrace(msg.headers) });
    // The heartbeat goes on until the end is confirmed: a slow confirmation must not bring the item to somebody else.
    await confirmDone(connection, newest, options);
  } catch (error) {
    if (error instanceof Superseded) return;
    if (error instanceof Requeued) await handBack(connection, newest(), options, work.taskId);
    else giveBack(connection, newest(), options, retryWaitMs(newest().deliveries - requeues, options));
  } finally {
    stopHeartbeat();
    running.delete(seq);
  }
}

async function handedBackBefore({ deliveries, seq }: Delivery, taskId: string, options: ItemOptions): Promise<number> {
  const { role, handBacks, attemptsMax, requeuesMax } = options;
  if (deliveries === 1) return 0;
  try {
    return Math.min(await handBacks.count({ role, taskId, seq }), requeuesMax);
  } catch (error) {
    // Whatever the count is, the attempts are used up: a task must get its end even if nobody can read it.
    if (deliveries > attemptsMax + requeuesMax) return requeuesMax;
    throw error;
  }
}

function startHeartbeat(connection: Connection, newest: () => Delivery, ackWaitMs: number): () => void {
  const timer = setInterval(() => say(connection, newest().msg, STILL_WORKING), ackWaitMs / WORKING_PER_ACK_WAIT);
  const stop = () => {
    clearInterval(timer);
    connection.closed.removeEventListener('abort', stop);
  };
  connection.closed.addEventListener('abort', stop, { once: true });
  return stop;
}

async function confirmDone(connection: Connection, newest: () => Delivery, { role }: ItemOptions): Promise<void> {
  const confirm = () => connection.nc.request(newest().msg.reply!, DONE, { timeout: ACK_TIMEOUT_MS });
  await retry(connection, `the end of an item of ${role}`, confirm, { timeoutMs: DONE_TIMEOUT_MS }).catch(() => {});
}

/** The count stands before the item is free. Where it cannot be written the delivery counts as an attempt, as that of a dead worker does. */
async function handBack(connection: Connection, delivery: Delivery, options: ItemOptions, taskId: string): Promise<void> {
  const { role, handBacks } = options;
  const { seq, deliveries } = delivery;
  await withinMs(handBacks.note({ role, taskId, seq }, deliveries), HAND_BACK_MS_MAX).catch(() => {});
  giveBack(connection, delivery, options, 0);
}

function retryWaitMs(failures: number, { ended }: ItemOptions): number {
  return ended.aborted ? 0 : backoffMs(failures, REDELIVERY_MS_BASE, REDELIVERY_MS_MAX, REDELIVERY_MS_MIN);
}

/** To be delivered again. After the last of all deliveries the server keeps the item and gives it to nobody: a dead item is given back until then. */
function giveBack(connection: Connection, { msg, deliveries }: Delivery, options: ItemOptions, waitMs: number): void {
  if (deliveries >= deliveriesMax(options)) connection.onEvent({ type: 'dead-letter', role: options.role });
  say(connection, msg, waitMs > 0 ? `${GIVEN_BACK} ${JSON.stringify({ delay: nanos(Math.ceil(waitMs)) })}` : GIVEN_BACK);
}

/** Without an answer: what is lost here, ackWaitMs makes good. */
function say(connection: Connection, msg: Msg, what: string): void {
  if (msg.reply) connection.send(msg.reply, what);
}

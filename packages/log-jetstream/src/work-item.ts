import type { Role } from '@hopline/events';
import {
  backoffMs,
  type Job,
  REDELIVERY_MS_BASE,
  REDELIVERY_MS_MAX,
  REDELIVERY_MS_MIN,
  SETTLE_DELIVERIES_MAX,
  Superseded,
} from '@hopline/log';
import { type Msg, nanos } from '@nats-io/nats-core';
import { decodeTrace, decodeWork } from './codec.ts';
import type { Connection } from './connection.ts';
import { type Delivery, parseDelivery } from './delivery.ts';
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

export type ItemOptions = {
  role: Role;
  attemptsMax: number;
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
  if (options.ended.aborted) return giveBack(connection, msg, 0);
  const work = decodeWork(msg.data);
  if (!work) {
    connection.onEvent({ type: 'undecodable', where: 'work' });
    say(connection, msg, TERMINATED);
    return;
  }
  const { running } = options;
  const { deliveries, seq } = delivery;
  if (running.has(seq)) {
    // Keep-alives were lost (the server was away), not the handler: it goes on under the new delivery. A second one beside it would be its own rival.
    running.set(seq, delivery);
    say(connection, msg, STILL_WORKING);
    return;
  }
  const exhausted = deliveries > options.attemptsMax;
  const job: Job = { work, attempt: deliveries, exhausted, ...decodeTrace(msg.headers) };
  running.set(seq, delivery);
  const newest = () => running.get(seq) ?? delivery;
  const stopHeartbeat = startHeartbeat(connection, newest, options.ackWaitMs);
  try {
    await handler(job);
    // The heartbeat goes on until the end is confirmed: a slow confirmation must not bring the item to somebody else.
    await confirmDone(connection, newest, options);
  } catch (error) {
    if (!(error instanceof Superseded)) reject(connection, newest(), options);
  } finally {
    stopHeartbeat();
    running.delete(seq);
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

function reject(connection: Connection, { msg, deliveries }: Delivery, { role, attemptsMax, ended }: ItemOptions): void {
  if (deliveries >= attemptsMax + SETTLE_DELIVERIES_MAX) connection.onEvent({ type: 'dead-letter', role });
  const waitMs = ended.aborted ? 0 : backoffMs(deliveries, REDELIVERY_MS_BASE, REDELIVERY_MS_MAX, REDELIVERY_MS_MIN);
  giveBack(connection, msg, waitMs);
}

function giveBack(connection: Connection, msg: Msg, waitMs: number): void {
  say(connection, msg, waitMs > 0 ? `${GIVEN_BACK} ${JSON.stringify({ delay: nanos(Math.ceil(waitMs)) })}` : GIVEN_BACK);
}

/** Without an answer: what is lost here, ackWaitMs makes good. */
function say(connection: Connection, msg: Msg, what: string): void {
  if (msg.reply) connection.send(msg.reply, what);
}

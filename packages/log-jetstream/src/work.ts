import { type Role, type TraceCarrier, type Work, workFilter, workSubject } from '@hopline/events';
import {
  backoffMs,
  type DeliveryBounds,
  deliveriesMax,
  type Job,
  LogUnavailable,
  requireRole,
  requireTaskId,
  type WorkQueue,
} from '@hopline/log';
import { AckPolicy, type ConsumerConfig, DeliverPolicy, JetStreamApiError } from '@nats-io/jetstream';
import { type Msg, nanos } from '@nats-io/nats-core';
import { encodePayload } from './codec.ts';
import type { Connection } from './connection.ts';
import type { Publisher } from './publisher.ts';
import { PullInbox } from './pull-inbox.ts';
import type { HandBacks } from './requeues.ts';
import { pause, retry } from './retry.ts';
import { WORK_STREAM } from './streams.ts';
import { type RunningItems, runItem } from './work-item.ts';

export type JetStreamWorkOptions = DeliveryBounds & { handBacks: HandBacks; ackWaitMs: number };

/** Items of one role that are out at workers at the same time, over all processes. */
const WORK_OUT_MAX = 4_096;
/** Pulls that may wait for one role, one a free slot, over all processes. */
const WORK_PULLS_MAX = 4_096;
const PULL_EXPIRES_MS = 10_000;
const REOPEN_MS_BASE = 100;
const REOPEN_MS_MAX = 5_000;
/**
 * The server removes the files of a deleted consumer a little later, and with them those of a new one of the same name, which then works but can never be changed
 * (error 10012, seen on 2.15.2 in one of five tries under load).
 */
const REPLACE_WAIT_MS = 500;
/** 2.10 and newer refuse to create a consumer that is there with other settings; older ones change it. */
const CONSUMER_EXISTS = 10148;
const CONSUMER_NOT_FOUND = 10014;

export class JetStreamWork implements WorkQueue {
  readonly #connection: Connection;
  readonly #publisher: Publisher;
  readonly #options: JetStreamWorkOptions;

  constructor(connection: Connection, publisher: Publisher, options: JetStreamWorkOptions) {
    this.#connection = connection;
    this.#publisher = publisher;
    this.#options = options;
  }

  async request(role: Role, work: Work, options: { id: string; trace?: TraceCarrier }): Promise<void> {
    requireRole(role);
    requireTaskId(work.taskId);
    await this.#publisher.publish(workSubject(role, work.taskId), encodePayload(work), options);
  }

  async take(role: Role, options: { slots: number; signal: AbortSignal }, handler: (job: Job) => Promise<void>): Promise<void> {
    requireRole(role);
    const ended = AbortSignal.any([options.signal, this.#connection.closed]);
    if (ended.aborted) return;
    await this.#patiently(0, ended, () => this.#setUpConsumer(role, ended));
    const running: RunningItems = new Map();
    const slots = Array.from({ length: options.slots }, () => this.#slot(role, ended, running, handler));
    await Promise.all(slots);
  }

  /** One pull of one item at a time: what a worker cannot run is never held back from another. */
  async #slot(role: Role, ended: AbortSignal, running: RunningItems, handler: (job: Job) => Promise<void>): Promise<void> {
    for (let failures = 0; !ended.aborted; ) {
      const arrived: Msg[] = [];
      const run = (msg: Msg) => runItem(this.#connection, msg, { ...this.#options, role, ended, running }, handler);
      const inbox = new PullInbox(this.#connection, WORK_STREAM, consumerName(role), msg => void arrived.push(msg));
      const onEnd = () => void inbox.close();
      ended.addEventListener('abort', onEnd, { once: true });
      let lost = false;
      while (!ended.aborted && !lost) {
        const end = await inbox.pull({ batch: 1, expiresMs: PULL_EXPIRES_MS });
        const msg = arrived.shift();
        if (msg) {
          failures = 0;
          await run(msg);
        }
        lost = end === 'lost';
      }
      ended.removeEventListener('abort', onEnd);
      await inbox.close();
      // Sent while the request was being withdrawn; handed back, or run if the worker goes on.
      for (const msg of arrived) await run(msg);
      if (ended.aborted) return;
      failures += 1;
      await this.#patiently(failures, ended, () => this.#replaceConsumer(role, ended));
    }
  }

  /** A worker waits for its log as long as it must: the items wait too. */
  async #patiently(failures: number, ended: AbortSignal, see: () => Promise<void>): Promise<void> {
    for (let tries = failures; !ended.aborted; tries += 1) {
      if (tries > 1) await pause(this.#connection, backoffMs(tries, REOPEN_MS_BASE, REOPEN_MS_MAX), ended);
      try {
        return await see();
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error;
      }
    }
  }

  /** One that is there is left as it is: a worker of an older release that lost its pull must not take back the settings of a newer one. */
  async #replaceConsumer(role: Role, signal: AbortSignal): Promise<void> {
    const { consumers } = this.#connection.jsm;
    const isThere = () => consumers.info(WORK_STREAM, consumerName(role)).then(() => true, isAbsent);
    if (await retry(this.#connection, `work of ${role}`, isThere, { signal })) return;
    await pause(this.#connection, REPLACE_WAIT_MS, signal);
    if (!(await retry(this.#connection, `work of ${role}`, isThere, { signal }))) await this.#setUpConsumer(role, signal);
  }

  /** Creates the role's consumer, or gives it the settings of this worker. */
  async #setUpConsumer(role: Role, signal: AbortSignal): Promise<void> {
    const { consumers } = this.#connection.jsm;
    const changeable = {
      ack_wait: nanos(this.#options.ackWaitMs),
      // The server's bound is of all deliveries; which of them are attempts is the workers' to know.
      max_deliver: deliveriesMax(this.#options),
      max_ack_pending: WORK_OUT_MAX,
    };
    const config: Partial<ConsumerConfig> = {
      ...changeable,
      durable_name: consumerName(role),
      filter_subject: workFilter(role),
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      max_waiting: WORK_PULLS_MAX,
    };
    const ensure = async () => {
      try {
        await consumers.add(WORK_STREAM, config);
      } catch (error) {
        if (!(error instanceof JetStreamApiError) || error.code !== CONSUMER_EXISTS) throw error;
        await consumers.update(WORK_STREAM, consumerName(role), changeable);
      }
    };
    await retry(this.#connection, `work of ${role}`, ensure, { signal });
  }
}

/** A consumer's name has no dots. */
function consumerName(role: Role): string {
  return role.replace('.', '-');
}

function isAbsent(error: unknown): false {
  if (error instanceof JetStreamApiError && error.code === CONSUMER_NOT_FOUND) return false;
  throw error;
}

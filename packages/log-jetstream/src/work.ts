import { type Role, type TraceCarrier, type Work, workFilter, workSubject } from '@hopline/events';
import {
  backoffMs,
  type DeliveryBounds,
  deliveriesMax,
  type Job,
  LogFull,
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
import type { RequeueCounts } from './requeues.ts';
import { pause, retry } from './retry.ts';
import { type RunningItems, runItem } from './work-item.ts';
import { CONSUMER_NOT_FOUND, consumerName, WorkRoom } from './work-room.ts';

export type JetStreamWorkOptions = DeliveryBounds & { requeueCounts: RequeueCounts; ackWaitMs: number; roleItemsMax: number };

/** Unacknowledged items of one role, over all processes. */
const UNACKED_MAX = 4_096;
/** Waiting pulls of one role, one per free slot, over all processes. */
const WORK_PULLS_MAX = 4_096;
const PULL_EXPIRES_MS = 10_000;
/** How long a request waits for room in a full queue, and the time between two tries, milliseconds. */
const FULL_WAIT_MS = 20_000;
const FULL_RETRY_MS = 1_000;
const REOPEN_MS_BASE = 100;
const REOPEN_MS_MAX = 5_000;
/**
 * The server removes the files of a deleted consumer asynchronously, and with them those of a new consumer of the same name,
 * which then works but cannot be updated (error 10012, seen on 2.15.2 in one of five tries under load).
 */
const REPLACE_WAIT_MS = 500;
/** 2.10 and newer reject the creation of an existing consumer with other settings; older servers update it. */
const CONSUMER_EXISTS = 10148;

export class JetStreamWork implements WorkQueue {
  readonly #connection: Connection;
  readonly #publisher: Publisher;
  readonly #options: JetStreamWorkOptions;
  readonly #room: WorkRoom;

  constructor(connection: Connection, publisher: Publisher, options: JetStreamWorkOptions) {
    this.#connection = connection;
    this.#publisher = publisher;
    this.#options = options;
    this.#room = new WorkRoom(connection, options.roleItemsMax);
  }

  async request(role: Role, work: Work, options: { id: string; trace?: TraceCarrier }): Promise<void> {
    requireRole(role);
    requireTaskId(work.taskId);
    const subject = this.#connection.names.subject(workSubject(role, work.taskId));
    const deadline = Date.now() + FULL_WAIT_MS;
    for (;;) {
      try {
        await this.#publisher.publish(subject, encodePayload(work), options);
        return;
      } catch (error) {
        if (!(error instanceof LogFull) || Date.now() + FULL_RETRY_MS > deadline) throw error;
      }
      await pause(this.#connection, FULL_RETRY_MS, this.#connection.closed);
    }
  }

  async requireRoom(role: Role): Promise<void> {
    requireRole(role);
    this.#connection.requireOpen();
    const problem = await this.#room.problem(role);
    if (problem !== undefined) throw new LogFull(problem);
  }

  async hasItem(role: Role, taskId: string): Promise<boolean> {
    requireRole(role);
    requireTaskId(taskId);
    const { jsm, names } = this.#connection;
    const subject = names.subject(workSubject(role, taskId));
    const read = () => jsm.streams.info(names.workStream, { subjects_filter: subject });
    const { state } = await retry(this.#connection, 'the work of a task', read);
    return Object.keys(state.subjects ?? {}).length > 0;
  }

  async take(role: Role, options: { slots: number; signal: AbortSignal }, handler: (job: Job) => Promise<void>): Promise<void> {
    requireRole(role);
    const ended = AbortSignal.any([options.signal, this.#connection.closed]);
    if (ended.aborted) return;
    await this.#untilAvailable(0, ended, () => this.#setUpConsumer(role, ended));
    const running: RunningItems = new Map();
    const slots = Array.from({ length: options.slots }, () => this.#slot(role, ended, running, handler));
    await Promise.all(slots);
  }

  /** Pulls one item at a time, so that a worker never holds an item it cannot run. */
  async #slot(role: Role, ended: AbortSignal, running: RunningItems, handler: (job: Job) => Promise<void>): Promise<void> {
    for (let failures = 0; !ended.aborted; ) {
      const arrived: Msg[] = [];
      const run = (msg: Msg) => runItem(this.#connection, msg, { ...this.#options, role, ended, running }, handler);
      const inbox = new PullInbox(
        this.#connection,
        this.#connection.names.workStream,
        consumerName(role),
        msg => void arrived.push(msg),
      );
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
      // Items sent while the pull was being canceled: requeued if the worker stops, run otherwise.
      for (const msg of arrived) await run(msg);
      if (ended.aborted) return;
      failures += 1;
      await this.#untilAvailable(failures, ended, () => this.#replaceConsumer(role, ended));
    }
  }

  /** Retries without a time limit while the log is unavailable: the items wait as well. */
  async #untilAvailable(failures: number, ended: AbortSignal, action: () => Promise<void>): Promise<void> {
    for (let tries = failures; !ended.aborted; tries += 1) {
      if (tries > 1) await pause(this.#connection, backoffMs(tries, REOPEN_MS_BASE, REOPEN_MS_MAX), ended);
      try {
        return await action();
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error;
      }
    }
  }

  /**
   * Leaves an existing consumer unchanged: during a rolling update a worker that lost its pull must not restore older settings.
   */
  async #replaceConsumer(role: Role, signal: AbortSignal): Promise<void> {
    const { names, jsm } = this.#connection;
    const { consumers } = jsm;
    const exists = () => consumers.info(names.workStream, consumerName(role)).then(() => true, falseIfMissing);
    if (await retry(this.#connection, `work of ${role}`, exists, { signal })) return;
    await pause(this.#connection, REPLACE_WAIT_MS, signal);
    if (!(await retry(this.#connection, `work of ${role}`, exists, { signal }))) await this.#setUpConsumer(role, signal);
  }

  /** Creates the role's consumer, or updates it to the settings of this worker. */
  async #setUpConsumer(role: Role, signal: AbortSignal): Promise<void> {
    const { names, jsm } = this.#connection;
    const { consumers } = jsm;
    const updatable = {
      ack_wait: nanos(this.#options.ackWaitMs),
      // The server bounds all deliveries; workers know which of them are attempts.
      max_deliver: deliveriesMax(this.#options),
      max_ack_pending: UNACKED_MAX,
    };
    const config: Partial<ConsumerConfig> = {
      ...updatable,
      durable_name: consumerName(role),
      filter_subject: names.subject(workFilter(role)),
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      max_waiting: WORK_PULLS_MAX,
    };
    const ensure = async () => {
      try {
        await consumers.add(names.workStream, config);
      } catch (error) {
        if (!(error instanceof JetStreamApiError) || error.code !== CONSUMER_EXISTS) throw error;
        await consumers.update(names.workStream, consumerName(role), updatable);
      }
    };
    await retry(this.#connection, `work of ${role}`, ensure, { signal });
  }
}

function falseIfMissing(error: unknown): false {
  if (error instanceof JetStreamApiError && error.code === CONSUMER_NOT_FOUND) return false;
  throw error;
}

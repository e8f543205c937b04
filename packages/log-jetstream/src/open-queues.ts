import { type Role, roleWorkFilter, TENANT_QUEUES, tenantQueueOfSubject, workersSubject } from '@hopline/events';
import type { Connection } from './connection.ts';
import { LastingSubscription } from './lasting-subscription.ts';
import { consumerName, QUEUES, type Queue } from './names.ts';
import { reportFailedCheck } from './periodic-check.ts';
import { pause, retry } from './retry.ts';
import { isConsumerNotFound } from './stream-requests.ts';

/**
 * The message about new work may be lost, and requesters of an earlier version send none. A worker therefore searches for such work: this
 * often at first, for rolling updates, and then less and less often, because a thousand idle agents search too.
 */
const SEARCH_MS_MIN = 5_000;
const SEARCH_MS_MAX = 60_000;
/** A requester repeats the message for one queue at most this often. */
const REPORT_MS = 1_000;
/** Queues whose last message a requester remembers. */
const REPORTED_MAX = 10_000;
/** The message for the queue of work without an owner. The message for a tenants' queue is the number of that queue. */
const OWNERLESS = '-';

/** Runs the queues of a role, each from the time of its first work: a queue without work needs no consumer. */
export class OpenQueues {
  readonly #connection: Connection;
  readonly #role: Role;
  readonly #run: (queue: Queue) => Promise<void>;
  readonly #running = new Map<Queue, Promise<void>>();
  readonly #failed = Promise.withResolvers<never>();

  /** `run` takes the work of a queue until the worker ends. */
  constructor(connection: Connection, role: Role, run: (queue: Queue) => Promise<void>) {
    this.#connection = connection;
    this.#role = role;
    this.#run = run;
  }

  /** Resolves when `signal` has aborted and all queues have ended; rejects when one of them fails. */
  async serve(signal: AbortSignal): Promise<void> {
    await Promise.race([this.#find(signal), this.#failed.promise]);
    await Promise.all(this.#running.values());
  }

  async #find(signal: AbortSignal): Promise<void> {
    const all = new AbortController();
    const ended = AbortSignal.any([signal, all.signal]);
    const onMsg = (msg: { string(): string }) => {
      const content = msg.string();
      if (content === OWNERLESS) this.#add(undefined);
      else if (/^\d$/.test(content)) this.#add(Number(content));
    };
    new LastingSubscription(this.#connection, this.#connection.names.subject(workersSubject(this.#role)), {
      onMsg,
      // Without messages, most work would wait for the next search.
      onDenied: () => this.#add(undefined),
      signal: ended,
    });
    if (await this.#isOpenAtStart(ended)) this.#add(undefined);
    for (
      let waitMs = SEARCH_MS_MIN;
      !ended.aborted && this.#running.size < QUEUES.length;
      waitMs = Math.min(2 * waitMs, SEARCH_MS_MAX)
    ) {
      await this.#search(ended).catch(error => reportFailedCheck(this.#connection, `work for ${this.#role}`, error));
      // Ends early at a reconnect, because a message may have been lost together with the connection.
      await pause(this.#connection, waitMs, ended);
    }
    all.abort();
  }

  /**
   * Whether the queue of work without an owner is opened before it has work. Supervisors open it, because there are few of them and each
   * user's question passes one. An agent opens it if it has ever had work, because in a rolling update relays of an earlier version send no
   * message for it.
   */
  async #isOpenAtStart(signal: AbortSignal): Promise<boolean> {
    if (this.#role === 'supervisor') return true;
    const name = consumerName(this.#role, undefined);
    const exists = () => this.#connection.streams.consumer(this.#role, undefined).then(() => true);
    try {
      return await retry(this.#connection, `work of ${name}`, exists, { signal });
    } catch (error) {
      return !isConsumerNotFound(error);
    }
  }

  async #search(signal: AbortSignal): Promise<void> {
    const { streams, names } = this.#connection;
    const filter = names.subject(roleWorkFilter(this.#role));
    const read = () => streams.info(names.workStream, filter);
    const { state } = await retry(this.#connection, `work for ${this.#role}`, read, { signal });
    const roleChars = filter.length - '>'.length;
    for (const subject of Object.keys(state.subjects ?? {})) {
      const isOwnerless = !subject.slice(roleChars).includes('.');
      this.#add(isOwnerless ? undefined : tenantQueueOfSubject(subject));
    }
  }

  #add(queue: Queue): void {
    if (queue !== undefined && !(queue < TENANT_QUEUES)) return;
    if (this.#running.has(queue)) return;
    const run = this.#run(queue);
    run.catch(this.#failed.reject);
    this.#running.set(queue, run);
  }
}

type Report = { sentAtMs: number; next?: NodeJS.Timeout };

/** The requester's side: it informs the workers of a role that a queue has work. */
export class QueueReports {
  readonly #connection: Connection;
  readonly #reports = new Map<string, Report>();

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.closed.addEventListener('abort', () => this.#clear(), { once: true });
  }

  /**
   * A worker that starts between two items must receive a message for the second one. So a message that would come too soon after the first
   * is delayed, not dropped.
   */
  report(role: Role, queue: Queue): void {
    const key = `${role} ${queue}`;
    const nowMs = performance.now();
    const report = this.#reports.get(key);
    if (report?.next !== undefined) return;
    const waitMs = report === undefined ? 0 : report.sentAtMs + REPORT_MS - nowMs;
    if (report !== undefined && waitMs > 0) {
      report.next = setTimeout(() => {
        this.#reports.delete(key);
        this.report(role, queue);
      }, waitMs).unref();
      return;
    }
    if (this.#reports.size >= REPORTED_MAX) this.#forgetSent();
    this.#reports.set(key, { sentAtMs: nowMs });
    this.#connection.send(this.#connection.names.subject(workersSubject(role)), queue === undefined ? OWNERLESS : `${queue}`);
  }

  /** A delayed message is kept: its queue may depend on nothing else. */
  #forgetSent(): void {
    for (const [key, { next }] of this.#reports) if (next === undefined) this.#reports.delete(key);
  }

  #clear(): void {
    for (const { next } of this.#reports.values()) clearTimeout(next);
    this.#reports.clear();
  }
}

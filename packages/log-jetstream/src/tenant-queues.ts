import { type Role, TENANT_QUEUES, tenantQueueOfSubject, tenantsWorkFilter, workersSubject } from '@hopline/events';
import type { Connection } from './connection.ts';
import { LastingSubscription } from './lasting-subscription.ts';
import { pause, retry } from './retry.ts';

/**
 * A message that work has come may be lost, and requesters of an earlier version send none. A worker looks for such work this often at first, as in
 * a rolling update, and then less and less often, because a thousand idle agents look too.
 */
const LOOK_MS_MIN = 5_000;
const LOOK_MS_MAX = 60_000;
/** A requester repeats the message for one queue at most this often. */
const REPORT_MS = 1_000;
/** Queues whose last message a requester remembers. */
const REPORTED_MAX = 10_000;

/** Runs the queues of tenants of a role, each from its first work on: a queue without work needs no consumer. */
export class TenantQueues {
  readonly #connection: Connection;
  readonly #role: Role;
  readonly #run: (queue: number) => Promise<void>;
  readonly #running = new Map<number, Promise<void>>();
  readonly #failed = Promise.withResolvers<never>();

  /** `run` takes the work of a queue until the worker ends. */
  constructor(connection: Connection, role: Role, run: (queue: number) => Promise<void>) {
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
      if (/^\d$/.test(msg.string())) this.#add(Number(msg.string()));
    };
    new LastingSubscription(this.#connection, this.#connection.names.subject(workersSubject(this.#role)), {
      onMsg,
      signal: ended,
    });
    for (
      let waitMs = LOOK_MS_MIN;
      !ended.aborted && this.#running.size < TENANT_QUEUES;
      waitMs = Math.min(2 * waitMs, LOOK_MS_MAX)
    ) {
      await this.#look(ended).catch(() => {});
      // Ends early at a reconnect, because a message may have been lost with the connection.
      await pause(this.#connection, waitMs, ended);
    }
    all.abort();
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { jsm, names } = this.#connection;
    const filter = names.subject(tenantsWorkFilter(this.#role));
    const read = () => jsm.streams.info(names.workStream, { subjects_filter: filter });
    const { state } = await retry(this.#connection, `work of tenants for ${this.#role}`, read, { signal });
    const prefixChars = names.subject('').length;
    for (const subject of Object.keys(state.subjects ?? {})) this.#add(tenantQueueOfSubject(subject.slice(prefixChars)));
  }

  #add(queue: number): void {
    if (!(queue < TENANT_QUEUES) || this.#running.has(queue)) return;
    const run = this.#run(queue);
    run.catch(this.#failed.reject);
    this.#running.set(queue, run);
  }
}

/** The requester's side: informs the workers of a role that a queue has work. */
export class TenantQueueReports {
  readonly #connection: Connection;
  readonly #reportedAtMs = new Map<string, number>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  report(role: Role, queue: number): void {
    const key = `${role} ${queue}`;
    const nowMs = performance.now();
    if (nowMs - (this.#reportedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < REPORT_MS) return;
    if (this.#reportedAtMs.size >= REPORTED_MAX) this.#reportedAtMs.clear();
    this.#reportedAtMs.set(key, nowMs);
    this.#connection.send(this.#connection.names.subject(workersSubject(role)), `${queue}`);
  }
}

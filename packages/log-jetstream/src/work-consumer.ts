import { backoffMs, deliveriesMax, type FairSlots, type Job, LogUnavailable, Requeued, type Slot } from '@hopline/log';
import type { Connection } from './connection.ts';
import { consumerName, QUEUES, type Queue } from './names.ts';
import { type Delivery, PullInbox } from './pull-inbox.ts';
import { pause, retry } from './retry.ts';
import { isConsumerNotFound } from './stream-requests.ts';
import { type ItemOptions, runItem } from './work-item.ts';

const PULL_EXPIRES_MS = 10_000;
/**
 * If agents have accounts of their own, the node that delivers may not see that a worker has stopped: what its last pull asked for is sent, and arrives nowhere
 * (ADR 262). So the first pull of an agent asks for one item, and the next one for twice as many if that was filled. A pull for more is short.
 * A worker that stops closes it: if it waited for its end, it would get the items again that it has just returned.
 */
const AGENT_BATCH_MAX = 32;
const AGENT_PULL_EXPIRES_MS = 1_000;
/** A pull is withdrawn when its worker has had fewer free slots than the pull asks for during this time. */
const WITHDRAW_AFTER_MS = 250;
const REOPEN_MS_BASE = 100;
const REOPEN_MS_MAX = 5_000;
/**
 * The server removes the files of a deleted consumer asynchronously, and with them those of a new consumer of the same name,
 * which then works but cannot be updated (error 10012, seen on 2.15.2 in one of five tries under load).
 */
const REPLACE_WAIT_MS = 500;

type WorkConsumerOptions = ItemOptions & {
  queue: Queue;
  queueTurnsMax: number;
  /** Shared by all queues of the worker. */
  slots: FairSlots<Queue>;
};

/** Takes the items of one queue of a role, as many at a time as the worker has free slots for this queue. */
export class WorkConsumer {
  readonly #connection: Connection;
  readonly #options: WorkConsumerOptions;
  readonly #handler: (job: Job) => Promise<void>;
  readonly #name: string;
  readonly #jobs = new Set<Promise<void>>();
  #failures = 0;
  /** Items that the next pull of an agent may ask for. */
  #batchMax = 1;

  constructor(connection: Connection, options: WorkConsumerOptions, handler: (job: Job) => Promise<void>) {
    this.#connection = connection;
    this.#options = options;
    this.#handler = handler;
    this.#name = consumerName(options.role, options.queue);
  }

  /** Takes items until the worker ends and the running handlers have settled. */
  async run(): Promise<void> {
    const { ended } = this.#options;
    await this.#untilAvailable(() => this.#ensure());
    while (!ended.aborted) {
      if ((await this.#pull()) !== 'lost' || ended.aborted) continue;
      this.#failures += 1;
      await this.#untilAvailable(() => this.#replace());
    }
    await Promise.all(this.#jobs);
  }

  /** Pulls until a request is lost, or until it is withdrawn because other queues have taken the slots. */
  async #pull(): Promise<'lost' | 'withdrawn'> {
    const { role, slots, queue, ended } = this.#options;
    const { workStream } = this.#connection.names;
    const inbox = new PullInbox(this.#connection, workStream, this.#name, delivery => this.#start(delivery));
    const asksForMore = () => inbox.left > Math.max(0, slots.room(queue));
    let withdrawn = false;
    let timer: NodeJS.Timeout | undefined;
    const withdraw = () => {
      timer = undefined;
      if (!asksForMore()) return;
      withdrawn = true;
      void inbox.close();
    };
    const unlisten = slots.listen(() => {
      if (timer === undefined && asksForMore()) timer = setTimeout(withdraw, WITHDRAW_AFTER_MS);
    });
    const onEnd = () => void inbox.close();
    ended.addEventListener('abort', onEnd, { once: true });
    let lost = false;
    while (!ended.aborted && !lost) {
      const batch = await this.#nextBatch();
      if (batch === 0) continue;
      const isShort = role !== 'supervisor' && batch > 1;
      const end = await inbox.pull({ batch, expiresMs: isShort ? AGENT_PULL_EXPIRES_MS : PULL_EXPIRES_MS });
      lost = end === 'lost';
      this.#batchMax = end === 'full' ? Math.min(2 * this.#batchMax, AGENT_BATCH_MAX) : 1;
    }
    clearTimeout(timer);
    unlisten();
    ended.removeEventListener('abort', onEnd);
    // Items that the server has already sent still arrive. They are requeued if the worker stops, otherwise they run.
    await inbox.close();
    return withdrawn ? 'withdrawn' : 'lost';
  }

  /**
   * Waits until the queue has a free slot. All queues pull at the same time, so each asks for only a part of the slots. A worker then holds
   * at most one item per queue that it cannot run yet. Resolves with 0 when the worker has ended.
   */
  async #nextBatch(): Promise<number> {
    const { role, slots, queue, ended } = this.#options;
    if (slots.room(queue) <= 0 && !ended.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const unlisten = slots.listen(() => slots.room(queue) > 0 && resolve());
      const onEnd = () => resolve();
      ended.addEventListener('abort', onEnd);
      await promise;
      unlisten();
      ended.removeEventListener('abort', onEnd);
    }
    if (ended.aborted) return 0;
    const batch = Math.max(1, Math.floor(slots.room(queue) / QUEUES.length));
    return role === 'supervisor' ? batch : Math.min(batch, this.#batchMax);
  }

  #start(delivery: Delivery): void {
    this.#failures = 0;
    const { slots, queue, ended } = this.#options;
    const slot = slots.reserve(queue);
    const inSlot = async (job: Job) => {
      const waits = !slot.isReady;
      await untilReady(slot, ended);
      // Another worker may have written while this item waited.
      const { newest: _newest, ...rest } = job;
      await this.#handler({ ...(waits ? rest : job), leaveSlot: () => slot.release() });
    };
    const job = runItem(this.#connection, delivery, this.#options, inSlot).finally(() => {
      slot.release();
      this.#jobs.delete(job);
    });
    this.#jobs.add(job);
  }

  /** Retries without a time limit while the log is unavailable, because the items are waiting there too. */
  async #untilAvailable(action: () => Promise<void>): Promise<void> {
    const { ended } = this.#options;
    for (let tries = this.#failures; !ended.aborted; tries += 1) {
      if (tries > 1) await pause(this.#connection, backoffMs(tries, REOPEN_MS_BASE, REOPEN_MS_MAX), ended);
      try {
        return await action();
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error;
      }
    }
  }

  /**
   * Leaves an existing consumer unchanged: in a rolling update, a worker that lost its pull must not restore older settings.
   */
  async #replace(): Promise<void> {
    const { role, queue, ended } = this.#options;
    const find = () => this.#connection.streams.consumer(role, queue).then(() => true, falseIfMissing);
    const exists = () => retry(this.#connection, `work of ${this.#name}`, find, { signal: ended });
    if (await exists()) return;
    await pause(this.#connection, REPLACE_WAIT_MS, ended);
    if (!(await exists())) await this.#ensure();
  }

  /** Creates the consumer, or updates it to the settings of this worker. */
  async #ensure(): Promise<void> {
    const { role, queue, ended, unclaimedWaitMs, queueTurnsMax } = this.#options;
    const settings = { ackWaitMs: unclaimedWaitMs, deliveriesMax: deliveriesMax(this.#options), turnsMax: queueTurnsMax };
    const ensure = () => this.#connection.streams.ensureConsumer(role, queue, settings);
    await retry(this.#connection, `work of ${this.#name}`, ensure, { signal: ended });
  }
}

async function untilReady({ ready }: Slot, ended: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(new Requeued('the worker is stopping'));
  ended.addEventListener('abort', stop, { once: true });
  await Promise.race([ready, promise]).finally(() => ended.removeEventListener('abort', stop));
}

function falseIfMissing(error: unknown): false {
  if (isConsumerNotFound(error)) return false;
  throw error;
}

import type { Owner, Role, TraceCarrier, Work } from '@hopline/events';
import { taskWorkFilters, tenantQueueOf, workSubject } from '@hopline/events';
import {
  type DeliveryBounds,
  FairSlots,
  heapWatch,
  type Job,
  type KeyValue,
  LogFull,
  requireRole,
  requireTaskId,
  type TakeOptions,
  type WorkQueue,
} from '@hopline/log';
import { encodePayload } from './codec.ts';
import type { Connection } from './connection.ts';
import { DeadWorkers } from './dead-workers.ts';
import type { Queue } from './names.ts';
import { OpenQueues, QueueReports } from './open-queues.ts';
import { DUPLICATE_WINDOW_MS } from './options.ts';
import type { Publisher } from './publisher.ts';
import type { Delivery } from './pull-inbox.ts';
import { QueuePlaces } from './queue-places.ts';
import type { RequeueCounts } from './requeue-counts.ts';
import { pause, retry } from './retry.ts';
import { RunningItems } from './running-items.ts';
import { WorkConsumer } from './work-consumer.ts';
import { WorkRoom } from './work-room.ts';
import type { WorkerEntry } from './worker-entry.ts';
import { WorkerPresence } from './worker-presence.ts';

type JetStreamWorkOptions = DeliveryBounds & {
  requeueCounts: RequeueCounts;
  workers: KeyValue<WorkerEntry>;
  ackWaitMs: number;
  /** At most ackWaitMs. */
  unclaimedWaitMs: number;
  claimMs: number;
  queueTurnsMax: number;
  roleItemsMax: number;
  tenantItemsMax: number;
  tenantSlotsShare: number;
};

/** How long a request waits for room in a full queue, and the interval of its tries. */
const FULL_WAIT_MS = 20_000;
const FULL_RETRY_MS = 1_000;

export class JetStreamWork implements WorkQueue {
  readonly duplicateWindowMs = DUPLICATE_WINDOW_MS;
  readonly #connection: Connection;
  readonly #publisher: Publisher;
  readonly #options: JetStreamWorkOptions;
  readonly #room: WorkRoom;
  readonly #reports: QueueReports;
  readonly #places: QueuePlaces;

  constructor(connection: Connection, publisher: Publisher, options: JetStreamWorkOptions) {
    this.#connection = connection;
    this.#publisher = publisher;
    this.#options = options;
    this.#room = new WorkRoom(connection, options);
    this.#reports = new QueueReports(connection);
    this.#places = new QueuePlaces(connection);
  }

  async request(role: Role, work: Work, options: { id: string; trace?: TraceCarrier }): Promise<{ duplicate: boolean }> {
    requireRole(role);
    requireTaskId(work.taskId);
    const subject = this.#connection.names.subject(workSubject(role, work.taskId, work.owner));
    const deadline = performance.now() + FULL_WAIT_MS;
    for (;;) {
      try {
        const { duplicate } = await this.#publisher.publish(subject, encodePayload(work), options);
        this.#reports.report(role, tenantQueueOf(work.owner));
        return { duplicate };
      } catch (error) {
        if (!(error instanceof LogFull) || performance.now() + FULL_RETRY_MS > deadline) throw error;
      }
      await pause(this.#connection, FULL_RETRY_MS, this.#connection.closed);
    }
  }

  async requireRoom(role: Role, owner?: Owner): Promise<void> {
    requireRole(role);
    this.#connection.requireOpen();
    const problem = await this.#room.problem(role, owner);
    if (problem !== undefined) throw problem;
  }

  async hasItem(role: Role, taskId: string): Promise<boolean> {
    requireRole(role);
    requireTaskId(taskId);
    const { streams, leaders, names } = this.#connection;
    const isStored = async (filter: string) => {
      const info = () => streams.info(names.workStream, names.subject(filter));
      // A call without an item ends as failed, so a leader that was deposed before the item came must not answer.
      const read = () => leaders.read(names.workStream, info);
      const { state } = await retry(this.#connection, 'the work of a task', read);
      return Object.keys(state.subjects ?? {}).length > 0;
    };
    const stored = await Promise.all(taskWorkFilters(role, taskId).map(isStored));
    return stored.includes(true);
  }

  async ahead(role: Role, { taskId, owner }: Pick<Work, 'taskId' | 'owner'>): Promise<number | undefined> {
    requireRole(role);
    requireTaskId(taskId);
    this.#connection.requireOpen();
    return this.#places.ahead(role, taskId, owner);
  }

  async take(role: Role, options: TakeOptions, handler: (job: Job) => Promise<void>): Promise<void> {
    requireRole(role);
    const ended = AbortSignal.any([options.signal, this.#connection.closed]);
    const { tenantSlotsShare } = this.#options;
    const tenantSlotsMax = Math.max(1, Math.floor(options.slots * tenantSlotsShare));
    const slots = new FairSlots<Queue>(options.slots, queue => (queue === undefined ? options.slots : tenantSlotsMax), {
      isScarce: heapWatch(() => performance.now()),
      isOpen: () => options.gate?.isOpen ?? true,
    });
    const unlisten = options.gate?.listen(() => slots.changed());
    const life = new AbortController();
    const running = this.#runningItems(role, AbortSignal.any([life.signal, this.#connection.closed]));
    const worker = {
      ...this.#options,
      role,
      slots,
      running: running.items,
      isClaimedElsewhere: running.isClaimedElsewhere,
      ended,
    };
    const run = (queue: Queue) => new WorkConsumer(this.#connection, { ...worker, queue }, handler).run();
    const queues = new OpenQueues(this.#connection, role, run);
    try {
      await queues.serve(ended);
    } finally {
      unlisten?.();
      await running.presence.leave();
      running.items.stop();
      life.abort();
    }
  }

  /** The items of a worker and what its siblings see of it, until `ended`. */
  #runningItems(
    role: Role,
    ended: AbortSignal,
  ): {
    items: RunningItems;
    presence: WorkerPresence;
    isClaimedElsewhere: (delivery: Delivery) => Promise<boolean>;
  } {
    const { ackWaitMs, unclaimedWaitMs, claimMs, workers: bucket } = this.#options;
    const items = new RunningItems(this.#connection, { unclaimedWaitMs, claimMs }, () => presence.changed());
    const [onSibling, onAnswer] = [
      (worker: string) => dead.onSibling(worker),
      (...received: Parameters<DeadWorkers['onAnswer']>) => dead.onAnswer(...received),
    ];
    const presence = new WorkerPresence(this.#connection, { role, bucket, running: items, onSibling, onAnswer }, ended);
    const dead = new DeadWorkers(this.#connection, { role, bucket, ackWaitMs, presence }, ended);
    presence.start();
    dead.start();
    return { items, presence, isClaimedElsewhere: (delivery: Delivery) => presence.isClaimedElsewhere(delivery) };
  }
}

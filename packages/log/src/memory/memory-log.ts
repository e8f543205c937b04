import { Layouts } from '@hopline/events';
import type { FollowOptions } from '../follow.ts';
import type { Log } from '../log.ts';
import { ATTEMPTS_MAX_DEFAULT, REQUEUES_MAX_DEFAULT, ROLE_ITEMS_MAX_DEFAULT, TENANT_ITEMS_MAX_DEFAULT } from '../work-queue.ts';
import { MemoryBucket, MemoryKeyValue } from './memory-key-value.ts';
import { MemoryPresence } from './memory-presence.ts';
import { MemoryFacts, MemoryInputs, requireOpen } from './memory-records.ts';
import type { Faults } from './memory-stream.ts';
import { MemoryStreams } from './memory-streams.ts';
import { type MemoryListeners, MemoryWakeUps } from './memory-wake-ups.ts';
import { MemoryItems, MemoryWork, type MemoryWorkOptions } from './memory-work.ts';

export type MemoryLogOptions = {
  shards?: number;
  /** Default: one layout with `shards` and one stream group. */
  layouts?: Layouts;
  recordBytesMax?: number;
  /** Limit for the bytes of the facts of a stream group; the oldest records beyond it are removed. Default: unlimited. */
  factsBytesMax?: number;
  /** Limit for the bytes of the task index; the oldest entries beyond it are removed. Default: unlimited. */
  tasksBytesMax?: number;
  attemptsMax?: number;
  requeuesMax?: number;
  ackWaitMs?: number;
  roleItemsMax?: number;
  tenantItemsMax?: number;
  follow?: FollowOptions;
};

/** A log in memory for tests, with the same contract as the JetStream log and fault injection. */
export type MemoryLog = Log & {
  /** Setting a count makes that many of the next operations fail, in any process. */
  readonly faults: Faults;
  /** Simulates another process on the same log. Its `close` simulates a crash: its running jobs are delivered again after ackWaitMs. */
  another(): MemoryLog;
  /** Simulates a reconnect of this process: its followers check for missed messages. */
  reconnect(): void;
  /** Simulates retention: removes the inputs or facts of a task below a sequence. */
  expire(what: 'inputs' | 'facts', taskId: string, below: number): void;
  /** Simulates retention: removes the inputs or facts of all tasks below a sequence. */
  expireAll(what: 'inputs' | 'facts', below: number): void;
  /** Simulates that an operator deleted the stream of inputs and a service created it again (ADR 41). */
  rebuildInputs(firstSeq: number): void;
  /** Simulates a loss of power: a stream group loses the facts after a log sequence, and new facts reuse their sequences. */
  loseFacts(lastSeq: number, group?: number): void;
  /** Simulates that the bucket of the task lists was lost and a relay created it again. */
  loseTaskLists(): void;
  /** Simulates the end of the duplicate window of the work queue: an item with a known id is stored again. */
  forgetWorkIds(): void;
  /** Stores a payload that no writer checked, and returns its sequence. By default it is not JSON. */
  garbage(what: 'inputs' | 'facts', taskId: string, json?: string): number;
};

const MEMORY_RECORD_BYTES_MAX = 1024 * 1024;
/** Shards of a log in memory. Many tests name one of them. */
const MEMORY_SHARDS = 16;
const ACK_WAIT_MS = 5_000;

type Store = {
  layouts: Layouts;
  recordBytesMax: number;
  faults: Faults;
  inputs: MemoryStreams;
  facts: MemoryStreams;
  items: MemoryItems;
  listeners: MemoryListeners;
  members: Set<string>;
  buckets: Record<
    'leases' | 'tasks' | 'taskLists' | 'agents' | 'messageIds' | 'contexts' | 'pushConfigs' | 'pushProgress',
    MemoryBucket
  >;
  work: MemoryWorkOptions;
  follow: FollowOptions;
};

export function createMemoryLog(options: MemoryLogOptions = {}): MemoryLog {
  const layouts = options.layouts ?? Layouts.one(options.shards ?? MEMORY_SHARDS);
  const recordBytesMax = options.recordBytesMax ?? MEMORY_RECORD_BYTES_MAX;
  const faults: Faults = { loseAcks: 0, loseLive: 0, conflicts: 0, refusals: 0, staleTails: 0 };
  return openMemoryLog({
    layouts,
    recordBytesMax,
    faults,
    inputs: new MemoryStreams(faults, layouts, recordBytesMax),
    facts: new MemoryStreams(faults, layouts, recordBytesMax, options.factsBytesMax),
    items: new MemoryItems(),
    listeners: new Set(),
    members: new Set(),
    buckets: {
      leases: new MemoryBucket(),
      tasks: new MemoryBucket(options.tasksBytesMax),
      taskLists: new MemoryBucket(options.tasksBytesMax),
      agents: new MemoryBucket(),
      messageIds: new MemoryBucket(),
      contexts: new MemoryBucket(),
      pushConfigs: new MemoryBucket(),
      pushProgress: new MemoryBucket(),
    },
    work: {
      attemptsMax: options.attemptsMax ?? ATTEMPTS_MAX_DEFAULT,
      requeuesMax: options.requeuesMax ?? REQUEUES_MAX_DEFAULT,
      ackWaitMs: options.ackWaitMs ?? ACK_WAIT_MS,
      roleItemsMax: options.roleItemsMax ?? ROLE_ITEMS_MAX_DEFAULT,
      tenantItemsMax: options.tenantItemsMax ?? TENANT_ITEMS_MAX_DEFAULT,
    },
    follow: options.follow ?? {},
  });
}

function openMemoryLog(store: Store): MemoryLog {
  const closing = new AbortController();
  const closed = closing.signal;
  const reconnects = new Set<() => void>();
  return {
    layouts: store.layouts,
    shards: store.layouts.shards,
    recordBytesMax: store.recordBytesMax,
    inputs: new MemoryInputs(store.inputs, closed),
    facts: new MemoryFacts(store.facts, store.faults, closed, reconnects, store.follow),
    work: new MemoryWork(store.items, store.work, closed),
    wakeUps: new MemoryWakeUps(store.listeners, closed),
    presence: new MemoryPresence(store.members, closed),
    leases: new MemoryKeyValue(store.buckets.leases, closed),
    tasks: new MemoryKeyValue(store.buckets.tasks, closed),
    taskLists: new MemoryKeyValue(store.buckets.taskLists, closed),
    agents: new MemoryKeyValue(store.buckets.agents, closed),
    messageIds: new MemoryKeyValue(store.buckets.messageIds, closed),
    contexts: new MemoryKeyValue(store.buckets.contexts, closed),
    pushConfigs: new MemoryKeyValue(store.buckets.pushConfigs, closed),
    pushProgress: new MemoryKeyValue(store.buckets.pushProgress, closed),
    check: async () => requireOpen(closed),
    checkAppends: async () => requireOpen(closed),
    purgeTask: async taskId => {
      requireOpen(closed);
      const [work, inputs, facts] = [store.items, store.inputs, store.facts].map(records => records.erase(taskId));
      return { work: work!, inputs: inputs!, facts: facts! };
    },
    close: async () => closing.abort(),
    faults: store.faults,
    another: () => openMemoryLog(store),
    reconnect: () => {
      for (const onReconnect of reconnects) onReconnect();
    },
    expire: (what, taskId, below) => store[what].of(taskId).expire(taskId, below),
    expireAll: (what, below) => store[what].expireAll(below),
    rebuildInputs: firstSeq => store.inputs.rebuild(firstSeq),
    loseFacts: (lastSeq, group = 0) => store.facts.ofGroup(group).loseTail(lastSeq),
    loseTaskLists: () => store.buckets.taskLists.lose(),
    forgetWorkIds: () => store.items.forgetIds(),
    garbage: (what, taskId, json = 'not json') => store[what].of(taskId).storeGarbage(taskId, json),
  };
}

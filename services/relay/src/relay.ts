import { randomUUID } from 'node:crypto';
import type { CoalesceSettings } from '@hopline/coalesce';
import { shardOf } from '@hopline/events';
import { type FactLog, factsId, isInFirstLayout, type Log, type LogExtent, Semaphore, type ShardProgress } from '@hopline/log';
import { LEASE_HEARTBEAT_MS, LEASE_MS, ShardLeases } from '@hopline/log/shard-leases';
import { type HopMetrics, LINE, type Logger } from '@hopline/telemetry';
import { CreationBudget } from './creation-budget.ts';
import { EndedLists } from './ended-lists.ts';
import { IndexWrites } from './index-writes.ts';
import { ListMigration } from './list-migration.ts';
import { LostTurns, type LostTurnsTimes } from './lost-turns.ts';
import { OwnedShards } from './owned-shards.ts';
import { PathMeasurement } from './path-measurement.ts';
import { RejectedRecords } from './rejected-records.ts';
import { RetentionSweep } from './retention-sweep.ts';
import type { ShardContext } from './shard.ts';
import { ShardTasks } from './shard-tasks.ts';
import { ShownTasks } from './shown-tasks.ts';
import { createSideEffects, type SideEffectsOptions } from './side-effects.ts';
import { TASK_BYTES_MAX } from './task-appender.ts';
import { authTimeout, copyForwardRule, countOpen, inputTimeout, oldestStart, TaskDeadlines } from './task-deadlines.ts';
import { TenantBytesWrites } from './tenant-bytes-writes.ts';
import { TurnWaits } from './turn-waits.ts';
import { UnknownTasks } from './unknown-tasks.ts';
import { WaitingInputs } from './waiting-inputs.ts';

export type RelayDeps = {
  log: Log;
  /** Name for people. Each process start adds a random suffix, because leases need a unique identity. */
  instance: string;
  coalesce: CoalesceSettings;
  metrics: HopMetrics;
  logger: Logger;
  leaseMs?: number;
  heartbeatMs?: number;
  /** Milliseconds for which a task may stay in input-required; absent: no limit. */
  inputTimeoutMs?: number | undefined;
  /** Milliseconds for which a task may stay in auth-required; absent: no limit. */
  authTimeoutMs?: number | undefined;
  /** Age of an open task's start at which its facts are copied forward, in milliseconds; absent: never. */
  copyForwardAfterMs?: number | undefined;
  /** Bytes of records of one task. A task that reaches the limit fails. Default TASK_BYTES_MAX. */
  taskBytesMax?: number;
  /** UTF-16 units of the facts of one part of a copy as JSON; default PART_UNITS_MAX. */
  copyPartUnitsMax?: number | undefined;
  /** Interval of the retention sweep, in milliseconds; default RETENTION_SWEEP_MS. */
  sweepMs?: number;
  /** Time between two moves of ended tasks into the lists of their owners, in milliseconds; default MOVE_MS. */
  moveMs?: number;
  /** Time between two checks whether the bucket of the task lists was created again, in milliseconds; default CHECK_MS. */
  listsCheckMs?: number;
  /** Minimum number of milliseconds between two turns whose critical path is measured; default PATH_PAUSE_MS. */
  pathPauseMs?: number;
  /** Milliseconds without a fact after which a task in progress is examined for lost inputs; default SILENT_MS_MIN. */
  silentMs?: number;
  /** Times of the checks for lost work items. The defaults are in lost-turns.ts. */
  lostTurns?: LostTurnsTimes;
};

export type Relay = {
  /** Shards this relay folds now. */
  readonly shards: ReadonlySet<number>;
  stop(): Promise<void>;
};

/** Starts the only writer of facts. Resolves when it owns the shards that were free at the start. */
export async function createRelay(deps: RelayDeps): Promise<Relay> {
  const { log, logger, metrics } = deps;
  const identity = `${deps.instance}-${randomUUID().slice(0, 8)}`;
  const ended = new EndedLists({ log, logger, ...(deps.moveMs !== undefined && { moveMs: deps.moveMs }) });
  const tasks = new ShardTasks({
    log,
    ended,
    now: Date.now,
    logger,
    onChange: (taskId, task) => deadlines.update(taskId, task),
  });
  const migration = new ListMigration({ log, tasks, ended, logger, checkMs: deps.listsCheckMs });
  const index = new IndexWrites(log.tasks, tasks);
  const shown = new ShownTasks(log, deps.logger);
  const owns = (shard: number) => owned.get(shard) !== undefined;
  const waits = new TurnWaits({ log, owns, metrics, logger });
  const paths = new PathMeasurement({ log, metrics, logger, now: () => performance.now(), pauseMs: deps.pathPauseMs });
  const tenantBytes = new TenantBytesWrites({ log, logger });
  const owned = new OwnedShards({
    context: shardContext(deps, identity, { log, index, shown, waits, paths, tenantBytes, tasks, migration }),
    restart: shard => leases.restart(shard),
    metrics,
    logger,
  });
  const deadlines = new TaskDeadlines({
    log,
    rules: deadlineRules(deps),
    owns,
    now: Date.now,
    logger,
  });
  const leases = shardLeases(deps, identity, { owned, tasks, migration, shown });
  metrics.shardLag.observe(() => owned.lags());
  metrics.shardRecords.observe(() => owned.recordsRead());
  metrics.shardOldestInput.observe(() => owned.oldestInputs(Date.now()));
  await migration.start();
  await leases.start();
  owned.flushLines();
  metrics.openTasks.observe(() => [...countOpen(tasks.open)].map(([state, count]) => [count, { state }]));
  metrics.openTasksOldestStart.observe(() => oldestStart(tasks.open).map(startedAt => [startedAt / 1_000, {}]));
  const sweep = retentionSweep(deps, { index, tasks, owned });
  const lostTurns = new LostTurns({ ...ownedTasks(deps, { tasks, owned }), logger, ...deps.lostTurns });
  return {
    get shards() {
      return leases.held;
    },
    stop: async () => {
      deadlines.stop();
      waits.stop();
      paths.stop();
      sweep.stop();
      lostTurns.stop();
      owned.close();
      ended.stop();
      migration.stop();
      await leases.stop();
      await tenantBytes.stop();
      tasks.stop();
      owned.flushLines();
    },
  };
}

/** Failed lease rounds are logged once in this time. */
const REPEATED_LINE_MS = 10_000;

type ShardState = { owned: OwnedShards; tasks: ShardTasks; migration: ListMigration; shown: ShownTasks };

function shardLeases(
  { log, logger, heartbeatMs, leaseMs }: RelayDeps,
  identity: string,
  { owned, tasks, migration, shown }: ShardState,
): ShardLeases {
  let failedLineAtMs = Number.NEGATIVE_INFINITY;
  const withListed = (shard: number, progress: ShardProgress | undefined) =>
    progress && { ...progress, ...migration.listedIn(shard) };
  return new ShardLeases({
    store: log.leases,
    presence: log.presence,
    keys: { member: 'relay', shard: 'shard' },
    shards: () => log.shards,
    instance: identity,
    heartbeatMs: heartbeatMs ?? LEASE_HEARTBEAT_MS,
    leaseMs: leaseMs ?? LEASE_MS,
    now: () => performance.now(),
    startShard: (shard, progress, cause) => {
      owned.start(shard, progress, cause);
      tasks.begin(shard);
      // No relay of a version without task lists has ever written tasks of later layouts.
      migration.begin(shard, progress.listed === true || !isInFirstLayout(shard, log.layouts), progress.listedIn);
    },
    stopShard: async shard => {
      const progress = withListed(shard, await owned.stop(shard));
      tasks.end(shard);
      migration.end(shard);
      shown.forget(shard);
      return progress;
    },
    progressOf: shard => withListed(shard, owned.get(shard)?.progress),
    onError: error => {
      // While the log is away every shard fails again and again.
      if (performance.now() - failedLineAtMs < REPEATED_LINE_MS) return;
      failedLineAtMs = performance.now();
      logger.warn({ err: error }, 'lease round failed');
    },
  });
}

type SweptState = { index: IndexWrites; tasks: ShardTasks; owned: OwnedShards };

function retentionSweep(deps: RelayDeps, { index, tasks, owned }: SweptState): RetentionSweep {
  const { logger, copyForwardAfterMs, sweepMs, silentMs } = deps;
  return new RetentionSweep({
    ...ownedTasks(deps, { tasks, owned }),
    index,
    copyForwardAfterMs,
    logger,
    ...(sweepMs !== undefined && { sweepMs }),
    ...(silentMs !== undefined && { silentMs }),
  });
}

/** The open tasks of this relay's shards, for checks that go over all of them. */
function ownedTasks({ log }: Pick<RelayDeps, 'log'>, { tasks, owned }: Pick<SweptState, 'tasks' | 'owned'>) {
  const shardOfTask = (taskId: string) => owned.get(shardOf(taskId, log.layouts));
  return {
    log,
    tasks,
    owns: (taskId: string) => shardOfTask(taskId) !== undefined,
    isBusy: (taskId: string) => shardOfTask(taskId)?.isBusy(taskId) !== false,
    now: Date.now,
  };
}

function deadlineRules({ inputTimeoutMs, authTimeoutMs, copyForwardAfterMs }: RelayDeps) {
  return [
    ...(inputTimeoutMs === undefined ? [] : [inputTimeout(inputTimeoutMs)]),
    ...(authTimeoutMs === undefined ? [] : [authTimeout(authTimeoutMs)]),
    ...(copyForwardAfterMs === undefined ? [] : [copyForwardRule(copyForwardAfterMs)]),
  ];
}

/** Number of shards whose checks run at the same time. A check takes milliseconds, and makes up to 16 requests at once. */
const BEGINS_AT_ONCE_MAX = 8;

/** Enough for thousands of open tasks in the second after a takeover. Each load makes some five requests. */
const AGENT_LOADS_AT_ONCE_MAX = 64;

/** Shards that start together share one reading of the leaderships. */
function leaderships(facts: FactLog): ShardContext['leadershipOf'] {
  let reading: Promise<LogExtent> | undefined;
  return async shard => {
    reading ??= facts.extent().finally(() => {
      reading = undefined;
    });
    return (await reading).ofShard(shard).leadership;
  };
}

type ShardEffects = SideEffectsOptions & {
  tenantBytes: TenantBytesWrites;
  tasks: Pick<ShardTasks, 'reopen' | 'mayBeOpen'>;
  migration: Pick<ListMigration, 'listedIn'>;
};

function shardContext(
  deps: RelayDeps,
  identity: string,
  { tenantBytes, tasks, migration, ...effects }: ShardEffects,
): Omit<ShardContext, 'onFailure' | 'owned'> {
  const { log, metrics, logger } = deps;
  const rejectedRecords = new RejectedRecords(metrics, logger);
  let appends = 0;
  return {
    inputs: log.inputs,
    waiting: new WaitingInputs(() => performance.now()),
    facts: log.facts,
    leadershipOf: leaderships(log.facts),
    begins: new Semaphore(BEGINS_AT_ONCE_MAX),
    unknownTasks: new UnknownTasks(),
    creations: new CreationBudget(),
    agentLoads: new Semaphore(AGENT_LOADS_AT_ONCE_MAX),
    mayBeOpen: (taskId, shard) => migration.listedIn(shard).listed !== true || tasks.mayBeOpen(taskId, shard),
    coalesce: deps.coalesce,
    layouts: () => log.layouts,
    indexedSeq: async taskId => {
      const { generation, seq = 0 } = (await log.tasks.get(taskId))?.value ?? { generation: 0 };
      return generation > 0 ? seq : undefined;
    },
    now: () => performance.now(),
    wallNow: Date.now,
    taskBytesMax: deps.taskBytesMax ?? TASK_BYTES_MAX,
    copyPartUnitsMax: deps.copyPartUnitsMax,
    appendId: taskId => factsId(taskId, identity, ++appends),
    applySideEffects: createSideEffects(effects),
    countStored: (taskId, owner, record) => tenantBytes.add(taskId, owner, record),
    metrics,
    logger,
    onRejectedRecord: rejected => rejectedRecords.add(rejected),
    onLostNewest: newest => tasks.reopen(newest),
    onRefold: shard => {
      metrics.logEvents.add(1, { kind: 'facts_lost' });
      logger.error({ shard }, LINE.factsLost);
    },
  };
}

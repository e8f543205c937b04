import { randomUUID } from 'node:crypto';
import type { CoalesceSettings } from '@hopline/coalesce';
import { shardOf } from '@hopline/events';
import { factsId, type Log, LogConflict } from '@hopline/log';
import { HEARTBEAT_INTERVAL_MS, LEASE_MS, ShardLeases } from '@hopline/log/shard-leases';
import { type HopMetrics, type Logger, ShardLines, snakeWord } from '@hopline/telemetry';
import { IndexWrites } from './index-writes.ts';
import { logStored } from './log-stored.ts';
import { measureFacts } from './measure-facts.ts';
import { RejectedRecords } from './rejected-records.ts';
import { RetentionSweep } from './retention-sweep.ts';
import { Shard, type ShardContext } from './shard.ts';
import { applySideEffects } from './side-effects.ts';
import { TASK_BYTES_MAX } from './task-appender.ts';
import { authTimeout, copyForwardRule, inputTimeout, TaskDeadlines } from './task-deadlines.ts';

export type RelayDeps = {
  log: Log;
  /** Name for people. Each process start adds a random suffix, because leases need a unique identity. */
  instance: string;
  coalesce: CoalesceSettings;
  metrics: HopMetrics;
  logger: Logger;
  leaseMs?: number;
  heartbeatMs?: number;
  /** How long a task may stay in input-required, milliseconds; absent: no limit. */
  inputTimeoutMs?: number | undefined;
  /** How long a task may stay in auth-required, milliseconds; absent: no limit. */
  authTimeoutMs?: number | undefined;
  /** Age of an open task's start at which its facts are copied forward, milliseconds; absent: never. */
  copyForwardAfterMs?: number | undefined;
  /** Bytes of records of one task; a task that has them fails. Default TASK_BYTES_MAX. */
  taskBytesMax?: number;
  /** Interval of the retention sweep, milliseconds; default RETENTION_SWEEP_MS. */
  sweepMs?: number;
  /** A task in progress without a fact for this long is examined for lost inputs, milliseconds; default SILENT_MS_MIN. */
  silentMs?: number;
};

export type Relay = {
  /** Shards this relay folds now. */
  readonly shards: ReadonlySet<number>;
  stop(): Promise<void>;
};

/** Pause before a failed shard restarts, milliseconds: an unavailable log must not cause a tight loop. */
const RESTART_PAUSE_MS = 100;

/** Starts the only writer of facts. Resolves after the first lease round. */
export async function createRelay(deps: RelayDeps): Promise<Relay> {
  const { log, logger, metrics } = deps;
  const identity = `${deps.instance}-${randomUUID().slice(0, 8)}`;
  const running = new Map<number, Shard>();
  const lines = new ShardLines(logger);
  const deadlines = new TaskDeadlines({
    log,
    rules: deadlineRules(deps),
    owns: shard => running.has(shard),
    now: Date.now,
    logger,
  });
  const index = new IndexWrites(log.tasks, taskId => deadlines.openTasks.get(taskId));
  const context = shardContext(deps, identity, index);

  const leases = new ShardLeases({
    store: log.leases,
    presence: log.presence,
    keys: { member: 'relay', shard: 'shard' },
    shards: log.shards,
    instance: identity,
    heartbeatMs: deps.heartbeatMs ?? HEARTBEAT_INTERVAL_MS,
    leaseMs: deps.leaseMs ?? LEASE_MS,
    now: () => performance.now(),
    startShard: (index, checkpoint, cause) => {
      lines.acquired(index, cause, checkpoint);
      metrics.ownedShards.add(1);
      if (cause !== 'restarted') metrics.takeovers.add(1, { reason: cause });
      const own = { owned: { at: Date.now(), cause }, onFailure: (error: unknown) => restartLater(index, error) };
      const shard = new Shard(index, checkpoint, { ...context, ...own });
      running.set(index, shard);
      shard.start();
    },
    stopShard: async index => {
      const shard = running.get(index);
      if (shard === undefined) return 0;
      running.delete(index);
      metrics.ownedShards.add(-1);
      await shard.stop();
      lines.released(index, shard.checkpoint);
      return shard.checkpoint;
    },
    checkpointOf: index => running.get(index)?.checkpoint ?? 0,
    onError: error => logger.warn({ err: error }, 'lease round failed'),
  });

  function restartLater(index: number, error: unknown): void {
    const conflict = error instanceof LogConflict;
    if (conflict) metrics.appendConflicts.add(1);
    metrics.shardRestarts.add(1, { reason: conflict ? 'conflict' : 'log_fault' });
    logger.warn({ shard: index, err: error }, conflict ? 'another relay wrote to a task of this shard' : 'shard failed');
    setTimeout(() => {
      leases.restart(index).catch(fault => logger.error({ shard: index, err: fault }, 'shard restart failed'));
    }, RESTART_PAUSE_MS);
  }

  metrics.shardLag.observe(() => [...running.values()].map(shard => [shard.lag, { shard: shard.index }]));
  await leases.start();
  lines.flush();
  metrics.openTasks.observe(() => [...deadlines.countOpen()].map(([state, count]) => [count, { state }]));
  const shardOfTask = (taskId: string) => running.get(shardOf(taskId, log.shards));
  const sweep = new RetentionSweep({
    log,
    index,
    openTasks: () => deadlines.openTasks,
    owns: taskId => shardOfTask(taskId) !== undefined,
    isBusy: taskId => shardOfTask(taskId)?.isBusy(taskId) !== false,
    copyForwardAfterMs: deps.copyForwardAfterMs,
    now: Date.now,
    logger,
    ...(deps.sweepMs !== undefined && { sweepMs: deps.sweepMs }),
    ...(deps.silentMs !== undefined && { silentMs: deps.silentMs }),
  });
  return {
    get shards() {
      return leases.held;
    },
    stop: async () => {
      deadlines.stop();
      sweep.stop();
      await leases.stop();
      lines.flush();
    },
  };
}

function deadlineRules({ inputTimeoutMs, authTimeoutMs, copyForwardAfterMs }: RelayDeps) {
  return [
    ...(inputTimeoutMs === undefined ? [] : [inputTimeout(inputTimeoutMs)]),
    ...(authTimeoutMs === undefined ? [] : [authTimeout(authTimeoutMs)]),
    ...(copyForwardAfterMs === undefined ? [] : [copyForwardRule(copyForwardAfterMs)]),
  ];
}

function shardContext(deps: RelayDeps, identity: string, index: IndexWrites): Omit<ShardContext, 'onFailure' | 'owned'> {
  const { log, metrics } = deps;
  const rejectedRecords = new RejectedRecords(metrics, deps.logger);
  let appends = 0;
  return {
    inputs: log.inputs,
    facts: log.facts,
    coalesce: deps.coalesce,
    shards: log.shards,
    hadFacts: async taskId => ((await log.tasks.get(taskId))?.value.generation ?? 0) > 0,
    now: () => performance.now(),
    wallNow: Date.now,
    taskBytesMax: deps.taskBytesMax ?? TASK_BYTES_MAX,
    appendId: taskId => factsId(taskId, identity, ++appends),
    applySideEffects: (step, trace, isStopped) => {
      const queuedAt = Date.now();
      const applied = applySideEffects(log, index, step, { trace, queuedAt, isStopped });
      measureFacts(step, metrics, queuedAt);
      return applied;
    },
    onRejected: (reason, count) => metrics.inputsRejected.add(count, { reason: snakeWord(reason) }),
    onRejectedRecord: rejected => rejectedRecords.add(rejected),
    onOutcome: (kind, outcome, count) => metrics.inputs.add(count, { kind, outcome }),
    onStored: (step, trace, isTakeover) => logStored(deps.logger, step, { trace, isTakeover }),
    onAppend: ms => metrics.appendDuration.recordMs(ms),
  };
}

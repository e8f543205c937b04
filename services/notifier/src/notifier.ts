import { randomUUID } from 'node:crypto';
import { backoffMs, type Log, LogConflict } from '@hopline/log';
import { LEASE_HEARTBEAT_MS, LEASE_MS, ShardLeases } from '@hopline/log/shard-leases';
import { type HopMetrics, type Logger, ShardLines } from '@hopline/telemetry';
import type { Resolve, WebhookRules } from '@hopline/webhook-guard';
import { BacklogBudget } from './backlog.ts';
import { type DeliveryContext, deliver } from './delivery.ts';
import { DeliveryWorkers } from './delivery-workers.ts';
import { OwnedConfigs } from './owned-configs.ts';
import type { PaceLimits } from './pace.ts';
import type { RetryLimits } from './retry-policy.ts';
import type { Trust } from './trusted-authorities.ts';
import { WebhookClient, type WebhookLimits } from './webhook-client.ts';

export type NotifierDeps = {
  log: Log;
  /** Name for people. Each process start adds a random suffix, because leases need a unique identity. */
  instance: string;
  rules: WebhookRules;
  limits: WebhookLimits & PaceLimits & { workersMax: number };
  retry: RetryLimits;
  metrics: HopMetrics;
  logger: Logger;
  leaseMs?: number;
  heartbeatMs?: number;
  /** Default: the certificate authorities that Node trusts. */
  trust?: Trust;
  /** Overridden in tests. */
  resolve?: Resolve;
  /** Overridden in tests without a network. */
  client?: Pick<WebhookClient, 'post' | 'close'>;
};

export type Notifier = {
  /** Shards whose webhooks this notifier serves now. */
  readonly shards: ReadonlySet<number>;
  stop(): Promise<void>;
};

/** Grace period for deliveries in flight when a shard is released. It is far shorter than a lease, because the heartbeat waits for it. */
const RELEASE_MS_MAX = 100;
/** Grace period for deliveries in flight when the process drains. */
const DRAIN_MS_MAX = 3_000;
/** Bounds of the pause before a worker restarts after an error (the log was unavailable, or another notifier wrote the progress). */
const RESTART_MS_MIN = 500;
const RESTART_MS_MAX = 5_000;

/** Starts delivering push notifications. Resolves after the first lease round. */
export async function createNotifier(deps: NotifierDeps): Promise<Notifier> {
  const { log, logger, metrics } = deps;
  const stopping = new AbortController();
  const { trust, resolve } = deps;
  const client =
    deps.client ?? new WebhookClient(deps.rules, deps.limits, { ...(trust && { trust }), ...(resolve && { resolve }) });
  const now = () => Date.now();
  const { rules, retry, limits: pace } = deps;
  const backlogs = new BacklogBudget();
  const context: DeliveryContext = { log, client, rules, retry, pace, backlogs, metrics, logger, now };
  const workers = new DeliveryWorkers({
    workersMax: deps.limits.workersMax,
    run: (key, signals) => deliver(key, context, signals),
    onError: (shard, error) => {
      if (error instanceof LogConflict) {
        metrics.appendConflicts.add(1);
        logger.info({ shard }, 'another notifier wrote the progress of a webhook in this shard');
        leases.confirm(shard).catch(fault => logger.warn({ shard, err: fault }, 'lease could not be read'));
      } else logger.warn({ shard, err: error }, 'delivery worker failed');
      return backoffMs(1, RESTART_MS_MAX, RESTART_MS_MAX, RESTART_MS_MIN);
    },
    onRunning: change => metrics.activeTasks.add(change),
  });
  metrics.webhookFailing.observe(() => [[Math.max(0, now() - (workers.failingSince ?? now())) / 1000, {}]]);
  metrics.webhookOldestEvent.observe(() => [[Math.max(0, now() - (workers.waitingSince ?? now())) / 1000, {}]]);
  const configs = new OwnedConfigs({
    log,
    signal: stopping.signal,
    start: (key, shard, revision) => workers.start(key, shard, revision),
    cancel: key => workers.cancel(key),
    running: () => workers.keys(),
    onError: error => logger.warn({ err: error }, 'push configurations could not be read'),
  });
  const lines = new ShardLines(logger);
  const leases: ShardLeases = createLeases(deps, configs, workers, lines);
  await configs.start();
  await leases.start();
  lines.flush();
  return {
    get shards() {
      return leases.held;
    },
    stop: async () => {
      stopping.abort();
      await workers.stop(DRAIN_MS_MAX);
      await leases.stop();
      lines.flush();
      await client.close();
    },
  };
}

function createLeases(deps: NotifierDeps, configs: OwnedConfigs, workers: DeliveryWorkers, lines: ShardLines): ShardLeases {
  const { log, logger, metrics } = deps;
  return new ShardLeases({
    store: log.leases,
    presence: log.presence,
    keys: { member: 'notifier', shard: 'notifier-shard' },
    shards: () => log.shards,
    instance: `${deps.instance}-${randomUUID().slice(0, 8)}`,
    heartbeatMs: deps.heartbeatMs ?? LEASE_HEARTBEAT_MS,
    leaseMs: deps.leaseMs ?? LEASE_MS,
    now: () => performance.now(),
    startShard: (shard, _progress, cause) => {
      lines.acquired(shard, cause);
      metrics.ownedShards.add(1);
      if (cause !== 'restarted') metrics.takeovers.add(1, { reason: cause });
      configs.startShard(shard);
    },
    stopShard: async shard => {
      metrics.ownedShards.add(-1);
      configs.stopShard(shard);
      await workers.release(shard, RELEASE_MS_MAX);
      lines.released(shard);
      return undefined;
    },
    progressOf: () => undefined,
    onError: error => logger.warn({ err: error }, 'lease round failed'),
  });
}

import { randomUUID } from 'node:crypto';
import { backoffMs, type Log, LogConflict } from '@hopline/log';
import { HEARTBEAT_INTERVAL_MS, LEASE_MS, ShardLeases } from '@hopline/log/shard-leases';
import type { HopMetrics, Logger } from '@hopline/telemetry';
import type { Resolve, WebhookRules } from '@hopline/webhook-guard';
import { type DeliveryContext, deliver } from './delivery.ts';
import { Lanes } from './delivery-workers.ts';
import { OwnedConfigs } from './owned-configs.ts';
import type { RetryLimits } from './retry-policy.ts';
import type { Trust } from './trusted-authorities.ts';
import { WebhookClient, type WebhookLimits } from './webhook-client.ts';

export type NotifierDeps = {
  log: Log;
  /** Name of the instance for people; each life of a process gets an identity of its own. */
  instance: string;
  rules: WebhookRules;
  limits: WebhookLimits & { lanesMax: number };
  retry: RetryLimits;
  metrics: HopMetrics;
  logger: Logger;
  leaseMs?: number;
  heartbeatMs?: number;
  /** Whom webhooks' certificates may be of; without it the authorities that Node trusts. */
  trust?: Trust;
  /** For tests: another name server. */
  resolve?: Resolve;
};

export type Notifier = {
  /** Shards whose webhooks this notifier tells now. */
  readonly shards: ReadonlySet<number>;
  stop(): Promise<void>;
};

/** What is on its way when a shard is handed over may still be taken for so long, milliseconds: far less than a lease, because the heartbeat waits meanwhile. */
const RELEASE_MS_MAX = 100;
/** The same when the process drains, milliseconds. */
const DRAIN_MS_MAX = 3_000;
/** A lane that failed by itself (the log was away, somebody else wrote its progress) begins again after up to this, milliseconds. */
const RESTART_MS_MIN = 500;
const RESTART_MS_MAX = 5_000;

/** Tells webhooks what happens to their tasks. Resolves when the first round of leases is done. */
export async function createNotifier(deps: NotifierDeps): Promise<Notifier> {
  const { log, logger, metrics } = deps;
  const stopping = new AbortController();
  const { trust, resolve } = deps;
  const client = new WebhookClient(deps.rules, deps.limits, { ...(trust && { trust }), ...(resolve && { resolve }) });
  const now = () => Date.now();
  const context: DeliveryContext = { log, client, rules: deps.rules, retry: deps.retry, metrics, logger, now };
  const lanes = new Lanes({
    lanesMax: deps.limits.lanesMax,
    run: (key, signals) => deliver(key, context, signals),
    failed: (shard, error) => {
      if (error instanceof LogConflict) {
        metrics.appendConflicts.add(1, { reason: 'other_notifier' });
        logger.info({ shard }, 'another notifier has told a webhook of this shard');
        leases.confirm(shard).catch(fault => logger.warn({ shard, err: fault }, 'the lease could not be read'));
      } else logger.warn({ shard, err: error }, 'a lane failed');
      return backoffMs(1, RESTART_MS_MAX, RESTART_MS_MAX, RESTART_MS_MIN);
    },
    now,
    working: change => metrics.activeTasks.add(change),
  });
  const configs = new OwnedConfigs({
    log,
    signal: stopping.signal,
    want: (key, shard, revision) => lanes.want(key, shard, revision),
    drop: key => lanes.drop(key),
    retain: keys => lanes.retain(keys),
    fault: error => logger.warn({ err: error }, 'configurations could not be read'),
  });
  const leases: ShardLeases = leasesOf(deps, configs, lanes);
  await configs.start();
  await leases.start();
  return {
    get shards() {
      return leases.held;
    },
    stop: async () => {
      stopping.abort();
      await lanes.stop(DRAIN_MS_MAX);
      await leases.stop();
      await client.close();
    },
  };
}

function leasesOf(deps: NotifierDeps, configs: OwnedConfigs, lanes: Lanes): ShardLeases {
  const { log, logger, metrics } = deps;
  return new ShardLeases({
    store: log.leases,
    keys: { member: 'notifier', shard: 'notifier-shard' },
    shards: log.shards,
    instance: `${deps.instance}-${randomUUID().slice(0, 8)}`,
    heartbeatMs: deps.heartbeatMs ?? HEARTBEAT_INTERVAL_MS,
    leaseMs: deps.leaseMs ?? LEASE_MS,
    now: () => performance.now(),
    startShard: shard => {
      logger.info({ shard }, 'shard acquired');
      metrics.ownedShards.add(1);
      configs.acquire(shard);
    },
    stopShard: async shard => {
      metrics.ownedShards.add(-1);
      configs.release(shard);
      await lanes.release(shard, RELEASE_MS_MAX);
      logger.info({ shard }, 'shard released');
      return 0;
    },
    checkpointOf: () => 0,
    onError: error => logger.warn({ err: error }, 'lease round failed'),
  });
}

import { formatCursor } from '@hopline/events';
import {
  type FactLog,
  type KeyValue,
  type PushConfigEntry,
  type PushProgressEntry,
  removeWebhookCount,
  sleepUnlessAborted,
} from '@hopline/log';
import { type HopMetrics, LINE, type Logger } from '@hopline/telemetry';
import { type WebhookRules, webhookUrlProblem } from '@hopline/webhook-guard';
import { Backlog, type BacklogBudget } from './backlog.ts';
import { DeliveryHop } from './delivery-hop.ts';
import type { DeliveryEnd, WorkerSignals } from './delivery-workers.ts';
import { Pace, type PaceLimits } from './pace.ts';
import type { PendingDelivery } from './pending-delivery.ts';
import { Progress } from './progress.ts';
import { type RetryLimits, retryWaitMs, WEBHOOK_RETRY_AFTER_MS_MAX } from './retry-policy.ts';
import { AFTER_HEADER, bodyOf, CURSOR_HEADER, headersOf, isKnownDialect } from './webhook-body.ts';
import type { AttemptFailure, AttemptOutcome, WebhookClient } from './webhook-client.ts';

/** A worker that has had no work for this long yields its slot to a waiting worker. */
const IDLE_MS_MAX = 5_000;
/**
 * How long a webhook that was set before its task is kept after its expiry, because the first message of the task may wait this long for a
 * relay.
 */
const EXPIRED_GRACE_MS = 60 * 60_000;

export type DeliveryContext = {
  log: { facts: FactLog; pushConfigs: KeyValue<PushConfigEntry>; pushProgress: KeyValue<PushProgressEntry> };
  client: Pick<WebhookClient, 'post'>;
  rules: WebhookRules;
  retry: RetryLimits;
  /** Created for each configuration. */
  pace: PaceLimits;
  /** Shared by all webhooks. */
  backlogs: BacklogBudget;
  metrics: HopMetrics;
  logger: Logger;
  /** Epoch milliseconds. */
  now: () => number;
};

/** `revision`: of the configuration. */
type Webhook = {
  key: string;
  revision: number;
  config: PushConfigEntry;
  host: string;
  headers: Record<string, string>;
  progress: Progress;
};

/**
 * Delivers the events of one task to one webhook, each one after the previous one was accepted, until the task's last event has been
 * delivered, or until the worker must wait or stop.
 */
export async function deliver(key: string, context: DeliveryContext, signals: WorkerSignals): Promise<DeliveryEnd> {
  const webhook = await loadWebhook(key, context);
  if (webhook === undefined) return 'finished';
  const { over, retryAt = 0, retryMs = WEBHOOK_RETRY_AFTER_MS_MAX, failingSince } = webhook.progress.value;
  if (over !== undefined) return 'finished';
  // The recorded time may come from another clock, or from this one before it was adjusted.
  const waitMs = signals.hasWaited ? 0 : Math.min(retryAt - context.now(), retryMs);
  if (waitMs > 0) return { retryMs: waitMs, failingSince };
  return new Delivery(webhook, context, signals).run();
}

async function loadWebhook(key: string, { log }: DeliveryContext): Promise<Webhook | undefined> {
  const entry = await log.pushConfigs.get(key);
  if (entry === undefined) return undefined;
  const { value: config, revision } = entry;
  const progress = await Progress.load(log.pushProgress, key, { config: revision, after: config.after });
  return {
    key,
    revision,
    config,
    host: URL.parse(config.url)?.host ?? 'none',
    headers: isKnownDialect(config.dialect) ? headersOf(config) : {},
    progress,
  };
}

/**
 * The states of a delivery: next -> attempt -> record -> attempt or next. `upTo`: the previous attempt contained all events up to this
 * generation and may have been received, so it is repeated unchanged.
 */
type State =
  | { step: 'next'; upTo?: number | undefined }
  | { step: 'attempt'; delivery: PendingDelivery }
  | { step: 'record'; delivery: PendingDelivery }
  | { step: 'end'; end: DeliveryEnd };

const end = (reason: DeliveryEnd): State => ({ step: 'end', end: reason });

class Delivery {
  readonly #webhook: Webhook;
  readonly #context: DeliveryContext;
  readonly #signals: WorkerSignals;
  readonly #pace: Pace;
  readonly #hop: DeliveryHop;

  constructor(webhook: Webhook, context: DeliveryContext, signals: WorkerSignals) {
    this.#webhook = webhook;
    this.#context = context;
    this.#signals = signals;
    this.#pace = new Pace(context.pace);
    const { config, host, progress } = webhook;
    this.#hop = new DeliveryHop({ taskId: config.taskId, dialect: config.dialect, host, failures: progress.value.failures });
  }

  async run(): Promise<DeliveryEnd> {
    const { config, progress } = this.#webhook;
    if (webhookUrlProblem(config.url, this.#context.rules) !== undefined) {
      return this.#recordFailure({ kind: 'failed', reason: 'forbidden_url', retry: 'never' });
    }
    // A notifier of the later version, which will replace this one, knows the dialect.
    if (!isKnownDialect(config.dialect))
      return this.#recordFailure({ kind: 'failed', reason: 'unknown_dialect', retry: 'normal' });
    // The receiver would refuse a notification without its secrets, but an operator may still add the key.
    if (config.sealed !== undefined) return this.#recordFailure({ kind: 'failed', reason: 'sealed', retry: 'normal' });
    const { generation, seq, sending } = progress.value;
    const reading = new AbortController();
    const signal = AbortSignal.any([reading.signal, this.#signals.draining]);
    const { taskId, dialect, owner } = config;
    const start = { taskId, dialect, generation, seq, owner, sending };
    const backlog = new Backlog(this.#context.log.facts, start, signal, this.#context.backlogs);
    try {
      let state: State = { step: 'next', upTo: sending };
      while (state.step !== 'end') {
        if (state.step === 'next') state = await this.#next(backlog, state.upTo);
        else if (state.step === 'attempt') state = await this.#attempt(state.delivery);
        else state = await this.#record(state.delivery, backlog);
      }
      return state.end;
    } finally {
      reading.abort();
      this.#hop.end();
    }
  }

  async #next(backlog: Backlog, upTo: number | undefined): Promise<State> {
    const status = await backlog.ready(upTo, IDLE_MS_MAX);
    switch (status) {
      case 'ready': {
        const waitMs = this.#pace.waitMs(performance.now());
        if (waitMs > 0) {
          if (this.#signals.mustYield()) return end({ retryMs: this.#pace.settledInMs(performance.now()) });
          // Events that are stored during the wait are merged if the dialect allows it.
          await sleepUnlessAborted(waitMs, this.#signals.draining);
          return this.#signals.draining.aborted ? end('stopped') : { step: 'next', upTo };
        }
        const delivery = backlog.take(upTo);
        this.#signals.waits(delivery?.at);
        return delivery === undefined ? { step: 'next' } : { step: 'attempt', delivery };
      }
      case 'idle': {
        if (await this.#hasExpired()) {
          const { key, revision, config } = this.#webhook;
          await removeWebhookCount(this.#context.log.pushConfigs, { key, revision, value: config });
          // Purged rather than deleted, because a deletion marker would take room in the bucket. If the configuration was set again, it
          // stays.
          await this.#context.log.pushConfigs.purge(key, revision);
          this.#context.logger.info({ task_id: config.taskId }, 'webhook expired: its task never started');
          return end('finished');
        }
        if (!this.#signals.mustYield()) return { step: 'next', upTo };
        const retryMs = this.#pace.settledInMs(performance.now());
        return end(retryMs > 0 ? { retryMs } : 'yielded');
      }
      case 'ended':
        await this.#webhook.progress.finish('delivered');
        return end('finished');
      case 'other-owner':
        await this.#webhook.progress.finish('abandoned');
        this.#context.metrics.webhooksAbandoned.add(1, { reason: 'other_owner' });
        this.#context.logger.warn({ task_id: this.#webhook.config.taskId, reason: 'other_owner' }, LINE.webhookAbandoned);
        return end('finished');
      case 'stopped':
        return end('stopped');
    }
  }

  /** The server deletes such a configuration if a client begins the task later. */
  async #hasExpired(): Promise<boolean> {
    const { taskId, waitsUntil } = this.#webhook.config;
    const { log, now } = this.#context;
    if (waitsUntil === undefined || now() < waitsUntil + EXPIRED_GRACE_MS) return false;
    return (await log.facts.last(taskId)) === undefined;
  }

  async #attempt(delivery: PendingDelivery): Promise<State> {
    const { progress } = this.#webhook;
    if (this.#signals.draining.aborted) return end('stopped');
    await progress.begin(delivery.generation);
    this.#hop.begin(delivery);
    const outcome = await this.#post(delivery);
    if (outcome.kind === 'aborted' || outcome.kind === 'busy') {
      return end(outcome.kind === 'aborted' || this.#signals.draining.aborted ? 'stopped' : 'yielded');
    }
    if (progress.value.failures > 0) this.#context.metrics.webhookRetries.add(1);
    if (outcome.kind === 'failed') {
      this.#hop.failed(outcome);
      return end(await this.#recordFailure(outcome));
    }
    this.#hop.delivered(delivery, outcome.status);
    return { step: 'record', delivery };
  }

  /** Waits for a request slot while no other worker needs this one's, then sends the notification. */
  async #post(delivery: PendingDelivery): Promise<AttemptOutcome> {
    const { config, headers, progress } = this.#webhook;
    const { draining, cancelled, mustYield } = this.#signals;
    const cursors = { [AFTER_HEADER]: formatCursor(progress.value), [CURSOR_HEADER]: formatCursor(delivery) };
    const body = () => {
      const text = bodyOf(config.dialect, delivery);
      const bytes = Buffer.byteLength(text);
      this.#hop.sent(bytes);
      this.#pace.sent(bytes, performance.now());
      this.#context.metrics.sent.add(bytes);
      return text;
    };
    const request = { url: config.url, headers: { ...headers, ...this.#hop.carrier(), ...cursors }, body };
    let outcome: AttemptOutcome;
    do {
      const slotWait = AbortSignal.any([AbortSignal.timeout(IDLE_MS_MAX), draining]);
      outcome = await this.#context.client.post(request, slotWait, cancelled);
    } while (outcome.kind === 'busy' && !draining.aborted && !mustYield());
    return outcome;
  }

  async #record(delivery: PendingDelivery, backlog: Backlog): Promise<State> {
    const { progress, host, config } = this.#webhook;
    const { metrics, now, logger } = this.#context;
    const { failures } = progress.value;
    metrics.webhookDeliveries.add(1, { outcome: 'delivered' });
    metrics.hopDuration.recordMs(now() - delivery.at, { hop: 'webhook' });
    if (failures > 0)
      this.#hop.run(() => logger.info({ task_id: config.taskId, host, attempt: failures + 1 }, LINE.webhookRecovered));
    const nowMs = performance.now();
    this.#pace.delivered(nowMs);
    const next = this.#pace.waitMs(nowMs) > 0 ? undefined : backlog.take();
    this.#signals.waits(next?.at);
    await progress.delivered(delivery, next);
    if (delivery.terminal) return end('finished');
    return next === undefined ? { step: 'next' } : { step: 'attempt', delivery: next };
  }

  /** Schedules the retry of a failed attempt, or abandons the webhook. */
  async #recordFailure({ reason, code, status, retry, retryAfterMs }: AttemptFailure): Promise<DeliveryEnd> {
    const { progress, host, config } = this.#webhook;
    const { metrics, logger, now } = this.#context;
    const failures = progress.value.failures + 1;
    const at = now();
    const failingSince = progress.value.failingSince ?? at;
    const waitMs = retryWaitMs({ failures, failingSince, retry, retryAfterMs }, this.#context.retry, at);
    const settledInMs = Math.ceil(this.#pace.settledInMs(performance.now()));
    const retryMs = waitMs === undefined ? undefined : Math.max(waitMs, settledInMs);
    metrics.webhookDeliveries.add(1, { outcome: reason });
    await progress.failed({ failures, failingSince, at, retryMs });
    const fields = { task_id: config.taskId, host, reason, code, status, attempt: failures };
    if (retryMs !== undefined) {
      if (failures === 1) this.#hop.run(() => logger.info({ ...fields, delay_ms: retryMs }, LINE.webhookFailed));
      return { retryMs, failingSince };
    }
    metrics.webhooksAbandoned.add(1, { reason });
    const line = { ...fields, generation: progress.value.generation, age_ms: Math.round(at - failingSince) };
    this.#hop.run(() => logger.warn(line, LINE.webhookAbandoned));
    return 'finished';
  }
}

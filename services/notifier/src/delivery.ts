import { formatCursor } from '@hopline/events';
import type { Entry, FactLog, KeyValue, PushConfigEntry, PushProgressEntry } from '@hopline/log';
import { ATTR, COUNT, type Hop, type HopMetrics, type Logger, SPAN, startHop } from '@hopline/telemetry';
import { type WebhookRules, webhookUrlProblem } from '@hopline/webhook-guard';
import { Backlog } from './backlog.ts';
import type { Pending } from './pending.ts';
import { Progress } from './progress.ts';
import { type RetryLimits, retryAt } from './retry-policy.ts';
import { bodyOf, CURSOR_HEADER, headersOf } from './webhook-body.ts';
import type { Outcome, WebhookClient } from './webhook-client.ts';

/** A lane that had nothing to do for this long gives its place to one that waits; milliseconds. */
const QUIET_MS_MAX = 5_000;

export type DeliveryContext = {
  log: { facts: FactLog; pushConfigs: KeyValue<PushConfigEntry>; pushProgress: KeyValue<PushProgressEntry> };
  client: WebhookClient;
  rules: WebhookRules;
  retry: RetryLimits;
  metrics: HopMetrics;
  logger: Logger;
  /** Epoch milliseconds. */
  now: () => number;
  quietMs?: number;
};

/** How a lane is told to stop. */
export type LaneSignals = {
  /** Nothing more is begun; what is on its way is finished. */
  leaving: AbortSignal;
  /** What is on its way is given up too. */
  cut: AbortSignal;
  /** Others wait for a place. */
  crowded: () => boolean;
};

/** Why a lane ended. `retryAt`: epoch milliseconds. `conflict` comes as LogConflict, a log that is away as LogUnavailable. */
export type Verdict = 'over' | 'stopped' | 'parked' | { retryAt: number };

type Webhook = { config: PushConfigEntry; host: string; headers: Record<string, string>; progress: Progress };

/** Tells one webhook about its task, event by event, each only after the one before was taken; until the task's end was told, or it must wait or stop. */
export async function deliver(key: string, context: DeliveryContext, signals: LaneSignals): Promise<Verdict> {
  const entry = await context.log.pushConfigs.get(key);
  if (entry === undefined) return 'over';
  const webhook = await openWebhook(key, entry, context);
  const { over, retryAt: notBefore = 0 } = webhook.progress.value;
  if (over !== undefined) return 'over';
  if (notBefore > context.now()) return { retryAt: notBefore };
  return new Delivery(webhook, context, signals).run();
}

async function openWebhook(
  key: string,
  { value: config, revision }: Entry<PushConfigEntry>,
  context: DeliveryContext,
): Promise<Webhook> {
  const progress = await Progress.load(context.log.pushProgress, key, { config: revision, after: config.after });
  return { config, host: URL.parse(config.url)?.host ?? 'none', headers: headersOf(config), progress };
}

class Delivery {
  readonly #webhook: Webhook;
  readonly #context: DeliveryContext;
  readonly #signals: LaneSignals;

  constructor(webhook: Webhook, context: DeliveryContext, signals: LaneSignals) {
    this.#webhook = webhook;
    this.#context = context;
    this.#signals = signals;
  }

  async run(): Promise<Verdict> {
    const { config, progress } = this.#webhook;
    if (webhookUrlProblem(config.url, this.#context.rules) !== undefined) {
      return this.#failed({ kind: 'failed', reason: 'forbidden_url', chance: 'none' });
    }
    const { generation, seq, sending } = progress.value;
    const reading = new AbortController();
    const signal = AbortSignal.any([reading.signal, this.#signals.leaving]);
    const { taskId, dialect, owner } = config;
    const backlog = new Backlog(this.#context.log.facts, { taskId, dialect, generation, seq, owner }, signal);
    try {
      return await this.#drain(backlog, sending);
    } finally {
      reading.abort();
    }
  }

  /** `begun`: what was told last, and perhaps not taken, is told again as it was. */
  async #drain(backlog: Backlog, begun: number | undefined): Promise<Verdict> {
    const { progress } = this.#webhook;
    let upTo = begun;
    for (;;) {
      const state = await backlog.ready(upTo, this.#context.quietMs ?? QUIET_MS_MAX);
      if (state === 'stopped') return 'stopped';
      if (state === 'ended') {
        await progress.finish('delivered');
        return 'over';
      }
      if (state === 'foreign') {
        await progress.finish('abandoned');
        this.#context.logger.warn({ task_id: this.#webhook.config.taskId, reason: 'other_owner' }, 'webhook abandoned');
        return 'over';
      }
      if (state === 'quiet') {
        if (this.#signals.crowded()) return 'parked';
        continue;
      }
      let pending = backlog.take(upTo);
      upTo = undefined;
      while (pending !== undefined) {
        if (this.#signals.leaving.aborted) return 'stopped';
        await progress.begin(pending.generation);
        const verdict = await this.#tell(pending);
        if (verdict !== undefined) return verdict;
        const next = backlog.take();
        await progress.delivered(pending, next);
        if (pending.terminal) return 'over';
        pending = next;
      }
    }
  }

  /** undefined: it was taken. */
  async #tell(pending: Pending): Promise<Verdict | undefined> {
    const { progress, host, config } = this.#webhook;
    const { metrics, now, logger } = this.#context;
    const { failures } = progress.value;
    const hop = this.#startHop(pending);
    const outcome = await this.#post(pending, hop);
    if (outcome === 'parked' || outcome.kind === 'aborted' || outcome.kind === 'busy') {
      hop.set({ [ATTR.outcome]: 'not_sent' });
      hop.end();
      return outcome === 'parked' ? 'parked' : 'stopped';
    }
    hop.set({ [ATTR.httpStatus]: outcome.status });
    if (failures > 0) metrics.webhookRetries.add(1);
    if (outcome.kind === 'failed') {
      hop.fail(outcome.reason);
      return this.#failed(outcome);
    }
    hop.end();
    metrics.webhookDeliveries.add(1, { reason: 'delivered' });
    metrics.logToWebhook.recordMs(now() - pending.at);
    if (failures > 0) logger.info({ task_id: config.taskId, host, attempt: failures + 1 }, 'the webhook answers again');
    return undefined;
  }

  async #post(pending: Pending, hop: Hop): Promise<Outcome | 'parked'> {
    const { config, headers } = this.#webhook;
    const { client, quietMs = QUIET_MS_MAX } = this.#context;
    const { leaving, cut, crowded } = this.#signals;
    const cursor = formatCursor({ generation: pending.generation, seq: pending.seq });
    const body = () => {
      const text = bodyOf(config.dialect, pending);
      hop.count(COUNT.bytesOut, Buffer.byteLength(text));
      return text;
    };
    const what = { url: config.url, headers: { ...headers, ...hop.carrier(), [CURSOR_HEADER]: cursor }, body };
    for (;;) {
      const patience = AbortSignal.any([AbortSignal.timeout(quietMs), leaving]);
      const outcome = await client.post(what, patience, cut);
      if (outcome.kind !== 'busy' || leaving.aborted) return outcome;
      if (crowded()) return 'parked';
    }
  }

  /** A child of what stored the event, so that a receiver who reads `traceparent` is in the trace of the task. */
  #startHop({ trace, lastTrace, count, generation, seq, event }: Pending): Hop {
    const { config, host, progress } = this.#webhook;
    const state = 'statusUpdate' in event ? event.statusUpdate.status.state : undefined;
    const hop = startHop(SPAN.sendPushNotification, {
      kind: 'client',
      parent: trace ?? {},
      links: count > 1 && lastTrace !== undefined ? [lastTrace] : [],
      attributes: {
        [ATTR.a2aTask]: config.taskId,
        [ATTR.a2aVersion]: config.dialect,
        [ATTR.a2aState]: state,
        [ATTR.serverAddress]: host,
        [ATTR.generation]: generation,
        [ATTR.cursor]: formatCursor({ generation, seq }),
        [ATTR.attempt]: progress.value.failures + 1,
      },
    });
    hop.count(COUNT.events, count);
    return hop;
  }

  async #failed(outcome: Extract<Outcome, { kind: 'failed' }>): Promise<Verdict> {
    const { progress, host, config } = this.#webhook;
    const { retry, metrics, logger, now } = this.#context;
    const { reason, code, status, chance, retryAfterMs } = outcome;
    const failures = progress.value.failures + 1;
    const failingSince = progress.value.failingSince ?? now();
    const next = retryAt({ failures, failingSince, chance, retryAfterMs }, retry, now());
    metrics.webhookDeliveries.add(1, { reason });
    await progress.failed({ failures, failingSince, retryAt: next });
    const fields = { task_id: config.taskId, host, reason, code, status, attempt: failures };
    if (next !== undefined) {
      if (failures === 1)
        logger.info({ ...fields, delay_ms: Math.round(next - now()) }, 'a webhook does not take a notification');
      return { retryAt: next };
    }
    metrics.webhooksAbandoned.add(1, { reason });
    logger.warn(
      { ...fields, generation: progress.value.generation, age_ms: Math.round(now() - failingSince) },
      'webhook abandoned',
    );
    return 'over';
  }
}

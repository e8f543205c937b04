import { A2AError } from '@hopline/a2a';
import { isSameOwner, type Owner, type Role } from '@hopline/events';
import type { Log, WebhookUsage } from '@hopline/log';
import { TokenBucket } from '@hopline/log';
import type { HopMetrics, Logger } from '@hopline/telemetry';
import type { Limits } from '../limits.ts';
import { OpenTasksCount } from './open-tasks-count.ts';
import { partyKeysOf } from './parties.ts';
import { SentBudget } from './sent-budget.ts';
import { StoredBytes } from './stored-bytes.ts';
import { WebhookUsages } from './webhook-usages.ts';

/** `stream`: an event stream or a blocking send. `request`: a send that does not wait for the turn, or a cancel. */
export type SlotKind = 'stream' | 'request';

/** Limits in the metric of refused requests. */
type QuotaName = 'messages' | 'bytes' | 'streams' | 'requests' | 'tasks' | 'webhooks' | 'stored' | 'sent';

/** Usage of this process by a caller, or by all callers of a tenant. */
type PartyUsage = {
  messages: TokenBucket;
  bytes: TokenBucket;
  sent: TokenBucket;
  slots: Record<SlotKind, number>;
  slotsMax: number;
};

/** `sweepAt`: number of parties at which idle ones are looked for. */
type PartyUsages = { byKey: Map<string, PartyUsage>; sweepAt: number };

type QuotasOptions = {
  log: Pick<Log, 'taskLists' | 'facts' | 'pushConfigs' | 'layouts'>;
  role: Role;
  limits: Limits;
  metrics: HopMetrics | undefined;
  logger: Logger;
};

/** Default share of the slots for one caller, and the largest share of one caller or tenant. */
const OWNER_SLOTS_SHARE = 0.4;
const PARTY_SLOTS_SHARE_MAX = 0.8;
/** Number of callers and tenants kept in memory. Beyond this number, idle ones are dropped; busy ones stay. */
const PARTIES_MAX = 10_000;
/** Retry-After for a client whose own tasks or webhooks must end first. */
const COUNT_RETRY_MS = 10_000;
const SLOT_RETRY_MS = 1_000;
/** Retry-After for a tenant that has used up its share of the log, which shrinks only as retention removes records. */
const STORED_RETRY_MS = 60_000;

/**
 * The limits of each caller, and of all callers of a tenant together, so that none of them can take everything. Streams, messages and bytes
 * are counted in this process; open tasks, webhooks and the share of the log over the cluster, by reading what the log has of the caller's tenant. Without authentication all
 * callers count as one.
 */
export class Quotas {
  readonly #limits: Limits;
  readonly #metrics: HopMetrics | undefined;
  readonly #owners: PartyUsages = { byKey: new Map(), sweepAt: PARTIES_MAX };
  readonly #tenants: PartyUsages = { byKey: new Map(), sweepAt: PARTIES_MAX };
  readonly #tasks: OpenTasksCount;
  readonly #webhooks: WebhookUsages;
  readonly #stored: StoredBytes | undefined;

  constructor({ log, role, limits, metrics, logger }: QuotasOptions) {
    this.#limits = limits;
    this.#metrics = metrics;
    const onLost = (error: unknown) => logger.warn({ err: error }, 'counts of owners lost');
    this.#tasks = new OpenTasksCount({ log, role, onLost });
    const { tenantStoredShare: shareMax } = limits;
    this.#stored = shareMax < 1 ? new StoredBytes({ log, shareMax, onLost }) : undefined;
    this.#webhooks = new WebhookUsages({ log, onLost });
  }

  /** Counts the bytes of a request. Throws QUOTA_EXCEEDED, except for a cancel, which is only counted. */
  takeBytes(caller: Owner, bytes: number, isCancel: boolean): void {
    this.#take(caller, 'bytes', bytes, isCancel ? undefined : 'too many bytes of requests from this caller or its tenant');
  }

  /** Counts a message that may begin a turn. Throws QUOTA_EXCEEDED. */
  takeMessage(caller: Owner): void {
    this.#take(caller, 'messages', 1, 'too many messages from this caller or its tenant');
  }

  /** Throws QUOTA_EXCEEDED while the caller or its tenant has exceeded its budget of sent bytes. */
  requireSentRoom(caller: Owner): void {
    const waitMs = this.sentBudget(caller)?.waitMs(performance.now()) ?? 0;
    if (waitMs > 0) throw this.#refusal(caller, 'sent', 'too many bytes were sent to this caller or its tenant', waitMs);
  }

  /** Counts an answer that is written whole. */
  countSent(caller: Owner, bytes: number): void {
    this.#metrics?.sent.add(bytes);
    this.sentBudget(caller)?.spend(bytes, performance.now());
  }

  /**
   * Budget for responses that are written piece by piece. Undefined without authentication, because there is no other caller to protect.
   */
  sentBudget(caller: Owner): SentBudget | undefined {
    if (isSameOwner(caller, undefined)) return undefined;
    return new SentBudget(this.#partiesOf(caller).map(({ sent }) => sent));
  }

  /** Reserves a slot; the returned function releases it. Throws QUOTA_EXCEEDED. */
  acquire(caller: Owner, kind: SlotKind): () => void {
    const parties = this.#partiesOf(caller);
    if (parties.some(({ slots, slotsMax }) => slots[kind] >= slotsMax)) {
      const what = kind === 'stream' ? 'open streams and waiting sends' : 'requests at once';
      throw this.#refusal(caller, `${kind}s` as const, `too many ${what} of this caller or its tenant`, SLOT_RETRY_MS);
    }
    for (const { slots } of parties) slots[kind] += 1;
    return () => {
      for (const { slots } of parties) slots[kind] -= 1;
    };
  }

  /** Throws QUOTA_EXCEEDED if the caller has too many open tasks for another one, or its tenant has used up its share of the log. */
  async requireTaskRoom(caller: Owner): Promise<void> {
    await this.#refreshTaskRoom(caller);
    this.#requireTaskRoom(caller);
  }

  /** Counts a task that is about to begin, unless it is already counted. Throws QUOTA_EXCEEDED. */
  async addTask(caller: Owner, taskId: string): Promise<void> {
    if (this.#tasks.has(taskId)) return;
    await this.#refreshTaskRoom(caller);
    if (this.#tasks.has(taskId)) return;
    // This runs in the same turn of the event loop as the addition, so that concurrent messages are counted one after another.
    this.#requireTaskRoom(caller);
    this.#tasks.add(caller, taskId);
  }

  async #refreshTaskRoom(caller: Owner): Promise<void> {
    await Promise.all([this.#tasks.refresh(caller, ...this.#openTasksMax()), this.#stored?.refresh(caller)]);
  }

  #openTasksMax(): [max: number, tenantMax: number] {
    const { ownerOpenTasksMax, tenantLimitFactor } = this.#limits;
    return [ownerOpenTasksMax, ownerOpenTasksMax * tenantLimitFactor];
  }

  #requireTaskRoom(caller: Owner): void {
    if (this.#tasks.isFull(caller, ...this.#openTasksMax()))
      throw this.#refusal(caller, 'tasks', 'too many tasks of this caller or its tenant are unfinished', COUNT_RETRY_MS);
    if (this.#stored?.isFull(caller))
      throw this.#refusal(
        caller,
        'stored',
        'the tasks of this tenant fill its share of the log until the oldest expire',
        STORED_RETRY_MS,
      );
  }

  /**
   * Counts a webhook that is about to be stored, or the bytes by which a webhook grows. Throws QUOTA_EXCEEDED if the caller or its tenant
   * has no room for it.
   */
  async addWebhook(caller: Owner, more: WebhookUsage): Promise<void> {
    await this.#webhooks.refresh(caller, this.#webhooksMax());
    // This runs in the same turn of the event loop as the addition, so that concurrent requests are counted one after another.
    this.#requireWebhookRoom(caller, more);
    this.#webhooks.add(caller, more);
  }

  /** Like `addWebhook`, but does not count it. */
  async requireWebhookRoom(caller: Owner, more: WebhookUsage): Promise<void> {
    await this.#webhooks.refresh(caller, this.#webhooksMax());
    this.#requireWebhookRoom(caller, more);
  }

  #webhooksMax(): WebhookUsage {
    return { entries: this.#limits.ownerPushConfigsMax, bytes: this.#limits.ownerPushConfigBytesMax };
  }

  #requireWebhookRoom(caller: Owner, more: WebhookUsage): void {
    const { tenantLimitFactor: factor } = this.#limits;
    const max = this.#webhooksMax();
    const { owner, tenant } = this.#webhooks.of(caller);
    const exceeds = (name: keyof WebhookUsage) => {
      const isBeyond = (usage: WebhookUsage | undefined, most: number) => (usage?.[name] ?? 0) + more[name] > most;
      return more[name] > 0 && (isBeyond(owner, max[name]) || isBeyond(tenant, max[name] * factor));
    };
    const isTooMany = exceeds('entries');
    if (!isTooMany && !exceeds('bytes')) return;
    const what = isTooMany ? 'too many push configurations' : 'too many bytes of push configurations';
    throw this.#refusal(caller, 'webhooks', `${what} of this caller or its tenant; delete some`, COUNT_RETRY_MS);
  }

  /** Counts a refusal. It is called from outside of this class for limits that are checked there. */
  countRefusal(caller: Owner, reason: QuotaName | 'items' | 'exports' | 'audits'): void {
    this.#metrics?.requestsRefused.add(1, { reason });
    this.#metrics?.tenantRefused.add(1, { ...this.#metrics.parties.of(caller), reason });
  }

  /** Takes from all parties of the caller, or from none. With `detail` undefined it always takes. */
  #take(caller: Owner, what: 'messages' | 'bytes', n: number, detail: string | undefined): void {
    const parties = this.#partiesOf(caller);
    // Reads the clock after new buckets have been created: with an earlier time, a new bucket would lack part of its burst.
    const nowMs = performance.now();
    const waitMs = Math.max(...parties.map(party => party[what].waitMs(n, nowMs)));
    if (waitMs > 0 && detail !== undefined) throw this.#refusal(caller, what, detail, waitMs);
    for (const party of parties) party[what].take(n, nowMs);
  }

  #refusal(caller: Owner, reason: QuotaName, detail: string, retryAfterMs: number): A2AError {
    this.countRefusal(caller, reason);
    return new A2AError('QUOTA_EXCEEDED', { detail, retryAfterMs });
  }

  #partiesOf(caller: Owner): PartyUsage[] {
    const { owner, tenant } = partyKeysOf(caller);
    const { streamsMax, ownerStreamsMax, tenantLimitFactor: factor } = this.#limits;
    // A share protects other callers, but without authentication there are none.
    const isAnonymous = isSameOwner(caller, undefined);
    const most = isAnonymous ? streamsMax : streamsMax * PARTY_SLOTS_SHARE_MAX;
    const slotsMax = ownerStreamsMax ?? (isAnonymous ? streamsMax : streamsMax * OWNER_SLOTS_SHARE);
    const parties = [this.#party(this.#owners, owner, 1, Math.min(slotsMax, most))];
    if (tenant !== undefined) parties.push(this.#party(this.#tenants, tenant, factor, Math.min(slotsMax * factor, most)));
    return parties;
  }

  #party(parties: PartyUsages, key: string, factor: number, slotsMax: number): PartyUsage {
    const { byKey } = parties;
    const known = byKey.get(key);
    if (known !== undefined) return known;
    const nowMs = performance.now();
    if (byKey.size >= parties.sweepAt) {
      for (const [name, party] of byKey) if (isIdle(party, nowMs)) byKey.delete(name);
      // With more busy parties than PARTIES_MAX, a sweep for each new party would examine all of them each time.
      parties.sweepAt = Math.max(PARTIES_MAX, 2 * byKey.size);
    }
    const limits = this.#limits;
    const bucket = (perSecond: number, burst: number) =>
      new TokenBucket({ perSecond: perSecond * factor, burst: burst * factor }, nowMs);
    const party: PartyUsage = {
      messages: bucket(limits.ownerMessagesPerSecond, limits.ownerMessagesBurst),
      // The burst must be able to hold the largest request.
      bytes: bucket(limits.ownerRequestBytesPerSecond, Math.max(limits.ownerRequestBytesBurst, limits.bodyBytesMax)),
      sent: bucket(limits.ownerSentBytesPerSecond, limits.ownerSentBytesBurst),
      slots: { stream: 0, request: 0 },
      slotsMax: Math.max(1, Math.floor(slotsMax)),
    };
    byKey.set(key, party);
    return party;
  }
}

function isIdle({ messages, bytes, sent, slots }: PartyUsage, nowMs: number): boolean {
  return slots.stream === 0 && slots.request === 0 && [messages, bytes, sent].every(bucket => bucket.isFull(nowMs));
}

import type { Owner } from '@hopline/events';
import { BoundedMap, type Log, readWebhookUsage, type WebhookUsage } from '@hopline/log';
import { partyKeysOf } from './parties.ts';

/** Age at which the usage of a party is read again. It is read earlier when this process has added this share of the limit. */
const READ_MS_MIN = 1_000;
const ADDED_SHARE = 1 / 64;
/**
 * The usage of a party is first read when this process has added this share of its limit. Below it, up to 16 processes together stay within the
 * limit, so it is never read for most parties.
 */
const UNSEEN_SHARE = 1 / 16;
/** Parties in memory. The one that appeared longest ago is forgotten first. */
const PARTIES_MAX = 10_000;

/**
 * `added` counts everything that this process has added, `addedBefore` the part of it that the last read usage includes. Both only grow,
 * because two callers of a tenant may read at the same time.
 */
type Party = { read: WebhookUsage; added: WebhookUsage; addedBefore: WebhookUsage; readAtMs: number; reading?: Promise<void> };
type Parties = { owner: Party; tenant: Party | undefined };

type WebhookUsagesOptions = {
  log: Pick<Log, 'pushConfigs'>;
  onLost(error: unknown): void;
  /** Monotonic milliseconds. */
  now?: () => number;
};

/**
 * The number and bytes of the webhooks of a caller and of its tenant, over the cluster. They are read from the log only for parties that set many
 * webhooks, and only those of their tenant.
 */
export class WebhookUsages {
  readonly #options: WebhookUsagesOptions;
  readonly #parties = new BoundedMap<string, Party>(PARTIES_MAX);
  readonly #now: () => number;

  constructor(options: WebhookUsagesOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Reads again what is due: the usage of the caller, and that of its tenant. `max` has the limits of one caller. */
  async refresh(caller: Owner, max: WebhookUsage): Promise<void> {
    const parties = this.#of(caller);
    const { owner, tenant } = parties;
    if (![owner, tenant].some(party => party !== undefined && this.#isDue(party, max))) return;
    owner.reading ??= this.#read(caller, parties).finally(() => {
      delete owner.reading;
    });
    await owner.reading;
  }

  /** Webhooks of the caller, and of all callers of its tenant, as last read, with those that this process has added since. */
  of(caller: Owner): { owner: WebhookUsage; tenant: WebhookUsage | undefined } {
    const { owner, tenant } = this.#of(caller);
    return { owner: usageOf(owner), tenant: tenant && usageOf(tenant) };
  }

  /** Counts a webhook that is about to be stored, or the bytes by which one grows. */
  add(caller: Owner, more: WebhookUsage): void {
    const { owner, tenant } = this.#of(caller);
    for (const party of [owner, tenant]) if (party !== undefined) party.added = plus(party.added, more);
  }

  #isDue(party: Party, max: WebhookUsage): boolean {
    const isUnseen = party.readAtMs === Number.NEGATIVE_INFINITY;
    const share = isUnseen ? UNSEEN_SHARE : ADDED_SHARE;
    const { entries, bytes } = minus(party.added, party.addedBefore);
    if (entries >= Math.max(1, max.entries * share) || bytes >= Math.max(1, max.bytes * share)) return true;
    return !isUnseen && this.#now() - party.readAtMs >= READ_MS_MIN;
  }

  async #read(caller: Owner, { owner, tenant }: Parties): Promise<void> {
    const parties = [[owner, 'owner'] as const, ...(tenant === undefined ? [] : [[tenant, 'tenant'] as const])];
    const added = parties.map(([party]) => party.added);
    for (const [party] of parties) party.readAtMs = this.#now();
    try {
      const usage = await readWebhookUsage(this.#options.log.pushConfigs, caller);
      for (const [index, [party, name]] of parties.entries()) {
        // Another caller of the tenant began to read later.
        if (party.addedBefore.entries > added[index]!.entries) continue;
        party.read = usage[name];
        party.addedBefore = added[index]!;
      }
    } catch (error) {
      this.#options.onLost(error);
    }
  }

  #of(caller: Owner): Parties {
    const { owner, tenant } = partyKeysOf(caller);
    return { owner: this.#party(owner), tenant: tenant === undefined ? undefined : this.#party(`tenant ${tenant}`) };
  }

  #party(key: string): Party {
    const known = this.#parties.get(key);
    if (known !== undefined) return known;
    const nothing = { entries: 0, bytes: 0 };
    const party = { read: nothing, added: nothing, addedBefore: nothing, readAtMs: Number.NEGATIVE_INFINITY };
    this.#parties.set(key, party);
    return party;
  }
}

const usageOf = ({ read, added, addedBefore }: Party): WebhookUsage => plus(read, minus(added, addedBefore));

const plus = (one: WebhookUsage, other: WebhookUsage): WebhookUsage => ({
  entries: one.entries + other.entries,
  bytes: one.bytes + other.bytes,
});

const minus = (one: WebhookUsage, other: WebhookUsage): WebhookUsage => ({
  entries: one.entries - other.entries,
  bytes: one.bytes - other.bytes,
});

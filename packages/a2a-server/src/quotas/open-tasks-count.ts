import { isTerminal } from '@hopline/a2a';
import type { Owner, Role } from '@hopline/events';
import { BoundedMap, isTaskEntry, type Log, openFilter } from '@hopline/log';
import { partyKeysOf } from './parties.ts';

/** Age at which a party is counted again. It is counted again earlier if the tasks begun by this process reach this share of the limit. */
const COUNT_MS_MIN = 1_000;
const BEGUN_SHARE = 1 / 64;
/**
 * A party is first counted when the tasks begun by this process reach this share of its limit. Below it, up to 16 processes together stay within the
 * limit, so most parties never need to be counted.
 */
const UNSEEN_SHARE = 1 / 16;
/** Number of parties in memory. The party whose count is oldest is dropped first. */
const PARTIES_MAX = 10_000;
/**
 * The entries of a party at its limit are read again after this time, or when there are fewer: otherwise a tenant that exceeds its limit
 * would make each server read thousands of them every second. `Retry-After` has the same value.
 */
const FULL_MS = 10_000;
/** Number of counted tasks that this process remembers, so that a retry of a message counts once. */
const COUNTED_MAX = 10_000;

/** `begun`: tasks that this process began since the count. */
type PartyCount = { count: number; begun: number; countedAtMs: number; counting?: Promise<void>; full?: FullParty };

/** The entries of a party that was at its limit, including ended tasks, and when they were read. */
type FullParty = { entries: number; readAtMs: number };

type OpenTasksCountOptions = {
  log: Pick<Log, 'taskLists'>;
  role: Role;
  onLost(error: unknown): void;
  /** Monotonic milliseconds. */
  now?: () => number;
};

/**
 * Counts the open tasks of a caller and of its tenant over the cluster, by asking the log about this party only, and only for parties that
 * begin many tasks.
 */
export class OpenTasksCount {
  readonly #options: OpenTasksCountOptions;
  readonly #parties = new BoundedMap<string, PartyCount>(PARTIES_MAX);
  readonly #counted = new BoundedMap<string, true>(COUNTED_MAX);
  readonly #now: () => number;

  constructor(options: OpenTasksCountOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  has(taskId: string): boolean {
    return this.#counted.has(taskId);
  }

  /** Counts a task that is about to begin. */
  add(caller: Owner, taskId: string): void {
    this.#counted.set(taskId, true);
    for (const { key } of partiesOf(caller)) this.#party(key).begun += 1;
  }

  /** Recounts the tasks of the caller and of its tenant, each if its count is due. `max` and `tenantMax` are their limits. */
  async refresh(caller: Owner, max: number, tenantMax: number): Promise<void> {
    for (const { key, isTenant } of partiesOf(caller)) {
      const party = this.#party(key);
      const most = isTenant ? tenantMax : max;
      const isUnseen = party.countedAtMs === Number.NEGATIVE_INFINITY;
      const isDue = isUnseen
        ? party.begun >= most * UNSEEN_SHARE
        : party.begun >= Math.max(1, most * BEGUN_SHARE) || this.#now() - party.countedAtMs >= COUNT_MS_MIN;
      if (!isDue) continue;
      party.counting ??= this.#count(caller, isTenant, party, most).finally(() => {
        delete party.counting;
      });
      await party.counting;
    }
  }

  /** Whether the caller has `max` open tasks or more, or its tenant `tenantMax`, as last counted. */
  isFull(caller: Owner, max: number, tenantMax: number): boolean {
    return partiesOf(caller).some(({ key, isTenant }) => {
      const { count, begun } = this.#party(key);
      return count + begun >= (isTenant ? tenantMax : max);
    });
  }

  async #count(caller: Owner, isTenant: boolean, party: PartyCount, max: number): Promise<void> {
    const { log, role, onLost } = this.#options;
    const begunBefore = party.begun;
    party.countedAtMs = this.#now();
    const filter = openFilter(role, caller, isTenant);
    try {
      const entries = await log.taskLists.count(filter, caller);
      const { full } = party;
      const isStillFull = full !== undefined && entries >= full.entries && party.countedAtMs - full.readAtMs < FULL_MS;
      if (!isStillFull) {
        // Entries of tasks that have just ended are counted too.
        party.count = entries < max ? entries : await this.#countOpen(filter, caller);
        if (party.count >= max) party.full = { entries, readAtMs: party.countedAtMs };
        else delete party.full;
      }
      party.begun -= begunBefore;
    } catch (error) {
      onLost(error);
    }
  }

  async #countOpen(filter: string, caller: Owner): Promise<number> {
    const entries = await this.#options.log.taskLists.match([filter], caller);
    return entries.filter(({ value }) => isTaskEntry(value) && !isTerminal(value.state)).length;
  }

  #party(key: string): PartyCount {
    const known = this.#parties.get(key);
    if (known !== undefined) return known;
    const party = { count: 0, begun: 0, countedAtMs: Number.NEGATIVE_INFINITY };
    this.#parties.set(key, party);
    return party;
  }
}

function partiesOf(caller: Owner): { key: string; isTenant: boolean }[] {
  const { owner, tenant } = partyKeysOf(caller);
  const ofCaller = { key: owner, isTenant: false };
  return tenant === undefined ? [ofCaller] : [ofCaller, { key: `tenant ${tenant}`, isTenant: true }];
}

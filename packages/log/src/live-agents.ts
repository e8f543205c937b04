import { followBucket } from './follow-bucket.ts';
import type { KeyValue } from './key-value.ts';
import type { AgentEntry } from './log.ts';

/** An agent whose heartbeat stood still for this long is gone, milliseconds. */
export const AGENT_SILENCE_MS_MAX = 10_000;

type Seen = { entry: AgentEntry; seenAtMs: number };

/** The agents that live now, from their announcements. Judged by this process's own clock, like the relays' leases. */
export class LiveAgents {
  readonly #now: () => number;
  #agents = new Map<string, Seen>();

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Follows the registry until `signal` aborts, also after it was lost; resolves when it has been read once, rejects when that fails. */
  async follow(agents: KeyValue<AgentEntry>, signal: AbortSignal, lost: (error: unknown) => void): Promise<void> {
    let found = new Map<string, Seen>();
    await followBucket(agents, signal, {
      begin: () => {
        found = new Map();
      },
      change: ({ key, value }) => {
        if (value === undefined) found.delete(key);
        else found.set(key, { entry: value, seenAtMs: this.#now() });
      },
      ready: () => {
        // What was removed while nobody looked is not in the new list.
        this.#agents = found;
      },
      lost,
    });
  }

  /** Live agents by name. */
  list(): AgentEntry[] {
    return this.all().filter(({ isLive }) => isLive);
  }

  /** Agents by name, also those that are silent: one that left says so, and is in no list. */
  all(): (AgentEntry & { isLive: boolean })[] {
    const after = this.#now() - AGENT_SILENCE_MS_MAX;
    const known = [...this.#agents.values()].map(({ entry, seenAtMs }) => ({ ...entry, isLive: seenAtMs >= after }));
    return known.sort((a, b) => a.name.localeCompare(b.name, 'en'));
  }
}

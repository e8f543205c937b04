import { followBucket } from './follow-bucket.ts';
import type { KeyValue } from './key-value.ts';
import type { AgentEntry } from './log.ts';

/** An agent whose heartbeat has not changed for longer than this is not live, milliseconds. */
export const AGENT_SILENCE_MS_MAX = 10_000;

type SeenAgent = { entry: AgentEntry; seenAtMs: number };

/** The registered agents and whether they are live. Measured with this process's own clock, like the relays' leases. */
export class LiveAgents {
  readonly #now: () => number;
  #agents = new Map<string, SeenAgent>();

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Follows the registry until `signal` aborts; a lost watch is opened again. Resolves when it has been read once, rejects when
   * that fails.
   */
  async follow(agents: KeyValue<AgentEntry>, signal: AbortSignal, onLost: (error: unknown) => void): Promise<void> {
    let found = new Map<string, SeenAgent>();
    await followBucket(agents, signal, {
      begin: () => {
        found = new Map();
      },
      change: ({ key, value }) => {
        if (value === undefined) found.delete(key);
        else found.set(key, { entry: value, seenAtMs: this.#now() });
      },
      ready: () => {
        // Agents that were removed while the watch was lost are not in the new map.
        this.#agents = found;
      },
      lost: onLost,
    });
  }

  /** Live agents by name. */
  list(): AgentEntry[] {
    return this.all().filter(({ isLive }) => isLive);
  }

  /** All registered agents by name, silent ones included. An agent that stopped in order has deleted its entry. */
  all(): (AgentEntry & { isLive: boolean })[] {
    const liveSinceMs = this.#now() - AGENT_SILENCE_MS_MAX;
    const agents = [...this.#agents.values()].map(({ entry, seenAtMs }) => ({ ...entry, isLive: seenAtMs >= liveSinceMs }));
    return agents.sort((a, b) => a.name.localeCompare(b.name, 'en'));
  }
}

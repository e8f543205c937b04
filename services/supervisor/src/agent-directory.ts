import type { AgentEntry, KeyValue } from '@hopline/log';

/** An agent whose heartbeat stood still for this long is gone, milliseconds. */
const AGENT_SILENCE_MS_MAX = 10_000;
/** How long a task waits for the first agent to appear before it fails, milliseconds: at a cold start agents announce themselves after the supervisor. */
const AGENT_WAIT_MS_MAX = 10_000;
const POLL_MS = 100;

/** The agents that live now, from their announcements. Judged by this process's own clock, like the relays' leases. */
export class AgentDirectory {
  readonly #entries = new Map<string, { entry: AgentEntry; seenAtMs: number }>();
  readonly #now: () => number;

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Follows the registry until `signal` aborts; resolves when what stands in it has been read once. */
  async follow(agents: KeyValue<AgentEntry>, signal: AbortSignal, fault: (error: unknown) => void): Promise<void> {
    const ready = Promise.withResolvers<void>();
    void (async () => {
      for await (const change of agents.watch(signal)) {
        if (change.type === 'ready') ready.resolve();
        else if (change.value === undefined) this.#entries.delete(change.key);
        else this.#entries.set(change.key, { entry: change.value, seenAtMs: this.#now() });
      }
    })().catch(error => {
      ready.reject(error);
      fault(error);
    });
    await ready.promise;
  }

  /** Live agents by name. */
  list(): AgentEntry[] {
    const after = this.#now() - AGENT_SILENCE_MS_MAX;
    const live = [...this.#entries.values()].filter(({ seenAtMs }) => seenAtMs >= after);
    return live.map(({ entry }) => entry).sort((a, b) => a.name.localeCompare(b.name, 'en'));
  }

  /** As `list`, but waits for an agent to appear when there is none; at most AGENT_WAIT_MS_MAX. */
  async atLeastOne(signal: AbortSignal): Promise<AgentEntry[]> {
    const until = this.#now() + AGENT_WAIT_MS_MAX;
    while (this.list().length === 0 && this.#now() < until && !signal.aborted) {
      await new Promise(resolve => setTimeout(resolve, POLL_MS));
    }
    return this.list();
  }
}

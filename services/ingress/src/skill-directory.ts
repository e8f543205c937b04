import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentSkill } from '@hopline/a2a';
import { backoffMs } from '@hopline/lifecycle';
import type { AgentEntry, KeyValue } from '@hopline/log';

/** An agent whose heartbeat stood still for this long is gone, milliseconds; the supervisor judges by the same. */
export const AGENT_SILENCE_MS_MAX = 10_000;
/** The registry is followed again after it was lost, milliseconds; full jitter. */
const REFOLLOW_MS = { baseMs: 200, capMs: 5_000 };

type Seen = { entry: AgentEntry; seenAtMs: number };

/** What the agents behind this ingress can do, for its card: the announcements of those that live, merged. */
export class SkillDirectory {
  readonly #now: () => number;
  #agents = new Map<string, Seen>();

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Follows the registry until `signal` aborts, also after it was lost; resolves when what stands in it has been read once, rejects when that fails.
   * A card out of date is better than none: a lost registry never stops the door.
   */
  async follow(agents: KeyValue<AgentEntry>, signal: AbortSignal, onLost: (error: unknown) => void): Promise<void> {
    const ready = Promise.withResolvers<void>();
    void this.#keepFollowing(agents, signal, onLost, ready);
    await ready.promise;
  }

  /** Skills by agent and id; an id that two agents have is told apart by the agent's name. */
  skills(): AgentSkill[] {
    const after = this.#now() - AGENT_SILENCE_MS_MAX;
    const live = [...this.#agents.values()].filter(({ seenAtMs }) => seenAtMs >= after).map(({ entry }) => entry);
    live.sort((a, b) => a.name.localeCompare(b.name, 'en'));
    const taken = new Set<string>();
    return live.flatMap(agent =>
      agent.skills.map(skill => {
        const id = taken.has(skill.id) ? `${agent.name}.${skill.id}` : skill.id;
        taken.add(id);
        return { ...skill, id };
      }),
    );
  }

  async #keepFollowing(
    agents: KeyValue<AgentEntry>,
    signal: AbortSignal,
    onLost: (error: unknown) => void,
    ready: PromiseWithResolvers<void>,
  ): Promise<void> {
    for (let losses = 1; !signal.aborted; losses += 1) {
      try {
        await this.#followOnce(agents, signal, () => {
          losses = 0;
          ready.resolve();
        });
      } catch (error) {
        ready.reject(error);
        onLost(error);
      }
      await sleep(backoffMs(losses, REFOLLOW_MS), undefined, { signal }).catch(() => {});
    }
    ready.resolve();
  }

  async #followOnce(agents: KeyValue<AgentEntry>, signal: AbortSignal, onReady: () => void): Promise<void> {
    const found = new Map<string, Seen>();
    for await (const change of agents.watch(signal)) {
      if (change.type === 'ready') {
        // What was removed while nobody looked is not in the new list.
        this.#agents = found;
        onReady();
      } else if (change.value === undefined) found.delete(change.key);
      else found.set(change.key, { entry: change.value, seenAtMs: this.#now() });
    }
  }
}

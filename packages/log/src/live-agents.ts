import { type AgentSkill, isObject, isTime } from '@hopline/a2a';
import { BoundedMap } from './bounded-map.ts';
import { followBucket } from './follow-bucket.ts';
import type { KeyValue } from './key-value.ts';
import type { AgentRegistration } from './log.ts';

/** An agent whose heartbeat has not changed for longer than this is not live. */
export const AGENT_SILENCE_MS_MAX = 10_000;

/**
 * Agents whose newest entry is known after it was deleted: those with the newest heartbeats, and for how long. A name may live for minutes, such as that of an
 * agent for one build, and an entry may have a long card.
 */
const AGENTS_REMEMBERED_MAX = 4_096;
export const AGENT_REMEMBERED_MS = 10 * 60_000;

type SeenInstance = { entry: AgentRegistration; seenAtMs: number };

export type RegisteredAgent = AgentRegistration & { isLive: boolean };

/** Instances by agent. With a thousand agents, a lookup of one agent must not visit all of them. */
class Instances {
  readonly #byAgent = new Map<string, Map<string, SeenInstance>>();
  #names: string[] | undefined;

  set(key: string, seen: SeenInstance): void {
    const name = agentOf(key);
    const instances = this.#byAgent.get(name);
    if (instances !== undefined) instances.set(key, seen);
    else {
      this.#byAgent.set(name, new Map([[key, seen]]));
      this.#names = undefined;
    }
  }

  delete(key: string): void {
    const name = agentOf(key);
    const instances = this.#byAgent.get(name);
    if (instances?.delete(key) !== true || instances.size > 0) return;
    this.#byAgent.delete(name);
    this.#names = undefined;
  }

  of(name: string): Iterable<SeenInstance> {
    return this.#byAgent.get(name)?.values() ?? [];
  }

  /** In alphabetical order. */
  get names(): readonly string[] {
    this.#names ??= [...this.#byAgent.keys()].sort((a, b) => a.localeCompare(b, 'en'));
    return this.#names;
  }
}

/**
 * The registered agents and whether they are live. Each running instance of an agent has its own entry, so that the other instances stay
 * registered when one stops. Liveness is measured with this process's own clock, like the relays' leases.
 */
export class LiveAgents {
  readonly #now: () => number;
  #instances = new Instances();
  #seenAtMs: number;
  readonly #newestOf = new BoundedMap<string, SeenInstance>(AGENTS_REMEMBERED_MAX);

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
    this.#seenAtMs = now();
  }

  /**
   * Follows the registry until `signal` aborts; a lost watch is opened again. Resolves when it has been read once, rejects when
   * that fails.
   */
  async follow(agents: KeyValue<AgentRegistration>, signal: AbortSignal, onLost: (error: unknown) => void): Promise<void> {
    let found = new Instances();
    await followBucket(agents, signal, {
      begin: () => {
        found = new Instances();
      },
      change: ({ key, value }) => {
        // Entries are checked, because an agent may write anything into its own entry, and every reader uses the entries of all agents.
        if (isAgentEntry(value) && agentOf(key) === value.name) {
          this.#seenAtMs = this.#now();
          const seen = { entry: value, seenAtMs: this.#seenAtMs };
          this.#newestOf.set(value.name, seen);
          for (const [name, { seenAtMs }] of this.#newestOf) {
            if (this.#seenAtMs - seenAtMs < AGENT_REMEMBERED_MS) break;
            this.#newestOf.delete(name);
          }
          found.set(key, seen);
        } else found.delete(key);
      },
      ready: () => {
        // Agents that were removed while the watch was lost do not appear again.
        this.#instances = found;
      },
      lost: onLost,
    });
  }

  /**
   * Milliseconds since the newest heartbeat of any agent, including agents that stopped gracefully. Before the first heartbeat, the time
   * since this object was created, because an agent may have stopped just before that: a drained node stops all its pods together.
   */
  msSinceSeen(): number {
    return this.#now() - this.#seenAtMs;
  }

  /**
   * The live agents, and those whose newest heartbeat is younger than `ms` (at most AGENT_REMEMBERED_MS), by name. Includes agents that
   * stopped gracefully, because they may be restarting.
   */
  seenWithin(ms: number): RegisteredAgent[] {
    const nowMs = this.#now();
    const live = this.list();
    const names = new Set(live.map(({ name }) => name));
    const away: RegisteredAgent[] = [];
    for (const [name, { entry, seenAtMs }] of this.#newestOf)
      if (!names.has(name) && nowMs - seenAtMs < ms) away.push({ ...entry, isLive: false });
    if (away.length === 0) return live;
    return [...live, ...away].sort((a, b) => a.name.localeCompare(b.name, 'en'));
  }

  /** Live agents by name. */
  list(): RegisteredAgent[] {
    return this.all().filter(({ isLive }) => isLive);
  }

  /**
   * All registered agents by name, including silent ones. An agent is live while one of its instances is live, and the live instance with
   * the newest heartbeat describes it. An instance that stopped gracefully has deleted its entry.
   */
  all(): RegisteredAgent[] {
    return this.#instances.names.map(name => this.#registered(name)!);
  }

  /** Whether an instance of the agent is live. */
  isLive(name: string): boolean {
    return this.#registered(name)?.isLive === true;
  }

  #registered(name: string): RegisteredAgent | undefined {
    const liveSinceMs = this.#now() - AGENT_SILENCE_MS_MAX;
    let agent: RegisteredAgent | undefined;
    for (const { entry, seenAtMs } of this.#instances.of(name)) {
      const instance = { ...entry, isLive: seenAtMs >= liveSinceMs };
      if (agent === undefined || isNewer(instance, agent)) agent = instance;
    }
    return agent;
  }
}

/** The keys of the registry are `<agent>.<instance>`. */
function agentOf(key: string): string {
  return key.split('.', 1)[0]!;
}

function isAgentEntry(value: unknown): value is AgentRegistration {
  if (!isObject(value)) return false;
  const { name, description, url, skills, heartbeat, fault = '', failing = '' } = value;
  const hasTexts = [name, description, url, fault, failing].every(isText);
  return hasTexts && isTime(heartbeat) && Array.isArray(skills) && skills.every(isAgentSkill);
}

/** Whether a value is a skill. Custom agent code may return anything. */
export function isAgentSkill(value: unknown): value is AgentSkill {
  if (!isObject(value)) return false;
  const { id, name, description, tags, examples = [] } = value;
  return [id, name, description].every(isText) && isTexts(tags) && isTexts(examples);
}

const isText = (value: unknown) => typeof value === 'string';
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText);

function isNewer(a: RegisteredAgent, b: RegisteredAgent): boolean {
  return a.isLive === b.isLive ? a.heartbeat > b.heartbeat : a.isLive;
}

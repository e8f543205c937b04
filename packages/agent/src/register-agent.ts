import { randomUUID } from 'node:crypto';
import type { AgentSkill } from '@hopline/a2a';
import { type AgentRegistration, isAgentSkill, type Log, sleepUnlessAborted } from '@hopline/log';
import { errorWord, type Logger } from '@hopline/telemetry';
import type { Agent } from './agent.ts';
import { AgentMisuse } from './misuse.ts';

/**
 * Interval of an agent's heartbeats in the registry. One of them may be lost within AGENT_SILENCE_MS_MAX. Each is a stored write that every
 * supervisor and ingress receives, which is the largest part of the cost of an idle agent.
 */
export const AGENT_HEARTBEAT_MS = 4_000;
/**
 * Interval in milliseconds at which the agent's skills are requested; until they have been received once, every heartbeat requests them.
 */
const SKILLS_MS = 30_000;
/**
 * How long the first registration waits for the skills, in milliseconds, because a task that is planned without them would go to the wrong
 * agent.
 */
const FIRST_SKILLS_MS_MAX = 3_000;
/**
 * Maximum number of skills of an entry, and of characters of a description. Both are bounded because every supervisor keeps all entries.
 */
export const SKILLS_MAX = 128;
export const ENTRY_DESCRIPTION_CHARS_MAX = 512;
/**
 * The same limits as in the agents file. Remote agents and code describe their skills themselves, and an entry of 1 MiB would be refused
 * with every heartbeat.
 */
export const SKILL_NAME_CHARS_MAX = 128;
export const TAGS_MAX = 32;
export const TAG_CHARS_MAX = 64;
export const EXAMPLES_MAX = 8;
export const EXAMPLE_CHARS_MAX = 256;
const MALFORMED_SKILLS =
  'skills() must resolve with a list of skills: id, name and description are strings, tags a list of strings';
/** An instance that was killed leaves its entry behind. The next instance that starts removes the entry if it is older than this. */
export const DEAD_INSTANCE_MS = 60 * 60_000;

type RegisterAgentOptions = {
  log: Log;
  name: string;
  agent: Agent;
  /** Address of the agent's own A2A endpoint. */
  url: string;
  /** Skills from the agents file. A skill with the same id as one of the agent replaces it. */
  skills: readonly AgentSkill[];
  /** Whether it takes messages that fit no skill. */
  isDefault: boolean;
  logger: Logger;
  signal: AbortSignal;
  heartbeatMs?: number;
  onRegistered?: (entry: AgentRegistration) => void;
  /** Called after each request for the agent's skills. `fault`: why the agent does not answer or cannot be started. */
  onSkills?: (fault: unknown) => void;
  /** Cause of the newest failed turn, if all recent turns have failed. */
  failing?: () => string | undefined;
};

/**
 * Keeps the entry of this agent instance in the registry until `signal` aborts, then removes it. An agent whose skills are unknown is
 * registered without them.
 */
export async function registerAgent(options: RegisterAgentOptions): Promise<void> {
  const { log, name, agent, url, isDefault, logger, signal } = options;
  const key = `${name}.${randomUUID()}`;
  const skills = new SkillsCache(options);
  void removeDeadInstances(options);
  await Promise.race([skills.refresh(), sleepUnlessAborted(FIRST_SKILLS_MS_MAX, signal)]);
  while (!signal.aborted) {
    const description = agent.description.slice(0, ENTRY_DESCRIPTION_CHARS_MAX);
    const shown = { name, description, url, skills: skills.current(), ...(isDefault && { default: true as const }) };
    const { fault } = skills;
    const { card } = agent;
    const failing = options.failing?.();
    const faults = { ...(fault !== undefined && { fault }), ...(failing !== undefined && { failing }) };
    const entry: AgentRegistration = { ...shown, ...faults, ...(card !== undefined && { card }), heartbeat: Date.now() };
    await log.agents.put(key, entry).then(
      () => options.onRegistered?.(entry),
      error => logger.warn({ agent: name, err: error }, 'agent could not be registered'),
    );
    await sleepUnlessAborted(options.heartbeatMs ?? AGENT_HEARTBEAT_MS, signal);
    void skills.refresh();
  }
  await log.agents.delete(key).catch(error => logger.warn({ agent: name, err: error }, 'agent could not be removed'));
}

/**
 * Removes entries of dead instances. If a live instance is removed because its clock is far off, it registers again with its next
 * heartbeat.
 */
async function removeDeadInstances({ log, name, logger }: RegisterAgentOptions): Promise<void> {
  try {
    const dead = (await log.agents.under(name)).filter(({ value }) => value.heartbeat < Date.now() - DEAD_INSTANCE_MS);
    await Promise.all(dead.map(({ key }) => log.agents.delete(key)));
  } catch (error) {
    logger.warn({ agent: name, err: error }, 'registry entries of dead instances could not be removed');
  }
}

class SkillsCache {
  readonly #options: RegisterAgentOptions;
  /** The agent's last answer. */
  #agentSkills: readonly AgentSkill[] | undefined;
  #requestedMs = Number.NEGATIVE_INFINITY;
  #requesting = false;
  /** Why the agent did not answer the newest request, as a word of a closed list. */
  #fault: string | undefined;

  constructor(options: RegisterAgentOptions) {
    this.#options = options;
  }

  get fault(): string | undefined {
    return this.#fault;
  }

  current(): AgentSkill[] {
    const merged = new Map([...(this.#agentSkills ?? []), ...this.#options.skills].map(skill => [skill.id, skill]));
    return [...merged.values()].slice(0, SKILLS_MAX).map(bounded);
  }

  /**
   * Requests the skills. Never rejects. Later heartbeats do not wait for the answer, because an agent that answers slowly must not look
   * dead.
   */
  async refresh(): Promise<void> {
    const due = this.#agentSkills === undefined || performance.now() - this.#requestedMs >= SKILLS_MS;
    if (this.#requesting || !due) return;
    this.#requesting = true;
    this.#requestedMs = performance.now();
    await this.#request();
    this.#requesting = false;
  }

  async #request(): Promise<void> {
    const { agent, name, logger, onSkills } = this.#options;
    try {
      const skills: unknown = await agent.skills();
      if (!Array.isArray(skills) || !skills.every(isAgentSkill)) throw new AgentMisuse(MALFORMED_SKILLS);
      this.#agentSkills = skills;
      onSkills?.(undefined);
      if (this.#fault !== undefined) logger.info({ agent: name, count: this.#agentSkills.length }, 'agent skills available');
      this.#fault = undefined;
    } catch (error) {
      onSkills?.(error);
      const before = this.#fault;
      this.#fault = errorWord(error);
      // A failure is logged once, not with every heartbeat.
      if (before === undefined) logger.warn({ agent: name, reason: this.#fault }, 'agent skills unavailable');
    }
  }
}

function bounded(skill: AgentSkill): AgentSkill {
  const { id, name, description, tags, examples } = skill;
  const entry = {
    id: id.slice(0, SKILL_NAME_CHARS_MAX),
    name: name.slice(0, SKILL_NAME_CHARS_MAX),
    description: description.slice(0, ENTRY_DESCRIPTION_CHARS_MAX),
    tags: cut(tags, TAGS_MAX, TAG_CHARS_MAX),
  };
  return examples === undefined ? entry : { ...entry, examples: cut(examples, EXAMPLES_MAX, EXAMPLE_CHARS_MAX) };
}

function cut(texts: readonly string[], textsMax: number, charsMax: number): string[] {
  return texts.slice(0, textsMax).map(text => text.slice(0, charsMax));
}

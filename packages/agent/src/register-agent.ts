import type { AgentEntry, Log } from '@hopline/log';
import type { Logger } from '@hopline/telemetry';
import type { Agent, AgentSkill } from './agent.ts';

/** An announced agent says that it lives this often, milliseconds. */
export const HEARTBEAT_INTERVAL_MS = 2_000;
/** The agent is asked for its skills this often, milliseconds; at every beat until it has answered once. */
const SKILLS_MS = 30_000;
/** The first announcement waits this long for the agent's skills, milliseconds: a task that is planned before they are known goes to the wrong agent. */
const FIRST_SKILLS_MS_MAX = 3_000;
/** Skills of one announcement, and characters of a description: the entry is one small value that every supervisor keeps. */
export const SKILLS_MAX = 128;
export const DESCRIPTION_CHARS_MAX = 512;
const EXAMPLES_MAX = 8;

export type AnnounceOptions = {
  log: Log;
  name: string;
  agent: Agent;
  /** Where the agent's own A2A endpoint is. */
  url: string;
  /** From the agents file; one of the same id stands in front of the agent's own. */
  skills: readonly AgentSkill[];
  logger: Logger;
  signal: AbortSignal;
  beatMs?: number;
  announced?: (entry: AgentEntry) => void;
};

/** Keeps the agent's entry in the registry alive until `signal` aborts, then removes it. An agent that cannot be asked is announced with what is known. */
export async function registerAgent(options: AnnounceOptions): Promise<void> {
  const { log, name, agent, url, logger, signal } = options;
  const asked = new SkillsAsked(options);
  await Promise.race([asked.refresh(), sleep(FIRST_SKILLS_MS_MAX, signal)]);
  while (!signal.aborted) {
    const description = agent.description.slice(0, DESCRIPTION_CHARS_MAX);
    const entry: AgentEntry = { name, description, url, skills: asked.skills(), heartbeat: Date.now() };
    await log.agents.put(name, entry).then(
      () => options.announced?.(entry),
      error => logger.warn({ agent: name, err: error }, 'agent could not be announced'),
    );
    await sleep(options.beatMs ?? HEARTBEAT_INTERVAL_MS, signal);
    void asked.refresh();
  }
  await log.agents.delete(name).catch(error => logger.warn({ agent: name, err: error }, 'agent could not be removed'));
}

class SkillsAsked {
  readonly #options: AnnounceOptions;
  #own: readonly AgentSkill[] | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;
  #asking = false;
  #failed = false;

  constructor(options: AnnounceOptions) {
    this.#options = options;
  }

  skills(): AgentSkill[] {
    const merged = new Map([...(this.#own ?? []), ...this.#options.skills].map(skill => [skill.id, skill]));
    return [...merged.values()].slice(0, SKILLS_MAX).map(bounded);
  }

  /** Never rejects. Not waited for after the first time: an agent that is slow to answer must not look dead. */
  async refresh(): Promise<void> {
    const due = this.#own === undefined || performance.now() - this.#askedMs >= SKILLS_MS;
    if (this.#asking || !due) return;
    this.#asking = true;
    this.#askedMs = performance.now();
    await this.#ask();
    this.#asking = false;
  }

  async #ask(): Promise<void> {
    const { agent, name, logger } = this.#options;
    try {
      this.#own = await agent.skills();
      if (this.#failed) logger.info({ agent: name, count: this.#own.length }, 'agent answers');
      this.#failed = false;
    } catch (error) {
      // Once, not at every beat.
      if (!this.#failed)
        logger.warn({ agent: name, reason: error instanceof Error ? error.name : 'other' }, 'agent does not tell its skills');
      this.#failed = true;
    }
  }
}

function bounded(skill: AgentSkill): AgentSkill {
  const { id, name, description, tags, examples } = skill;
  const shown = { id, name, description: description.slice(0, DESCRIPTION_CHARS_MAX), tags };
  return examples === undefined ? shown : { ...shown, examples: examples.slice(0, EXAMPLES_MAX) };
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = () => resolve();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', stop, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    // One for every beat would stay until the process ends.
    signal.removeEventListener('abort', stop);
  });
}

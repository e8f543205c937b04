import type { AgentSkill, Message } from '@hopline/a2a';
import { isAgentName, titleCase } from '@hopline/events';
import { type AgentRegistration, defaultAgentOf } from '@hopline/log';
import { agentPathOf } from './agent-path.ts';
import { NoAgentFits, type Plan, type Planner, type PlanRequest } from './planner.ts';

/** Characters of one token of the plan, similar to a model's stream (S0-11). */
const TOKEN_CHARS = 6;
/** Created only once, because it loads the rules of a language. */
const GRAPHEMES = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Maximum number of agents in one plan. A word of a message may name a skill of each of a thousand agents. */
export const PLAN_AGENTS_MAX = 16;

type Choice = { agent: AgentRegistration; skill: AgentSkill | undefined };

/**
 * Chooses agents without a model: the agent named in `metadata.agent`; the only agent, unless another one is the default; every agent with a skill that the message names
 * (S4-3), at most PLAN_AGENTS_MAX; otherwise the default agent. A message names a skill if its text has the skill's id, name, or one of its tags as a word.
 */
export class SkillPlanner implements Planner {
  /** HOPLINE_DEFAULT_AGENT. */
  readonly #defaultAgent: string | undefined;

  constructor(defaultAgent?: string) {
    this.#defaultAgent = defaultAgent;
  }

  async plan(request: PlanRequest): Promise<Plan> {
    const choices = this.#choose(request);
    return { text: tokens(describe(choices)), agents: choices.map(({ agent }) => agent.name) };
  }

  #choose(request: PlanRequest): Choice[] {
    const { message, agents } = request;
    const path = agentPathOf(request);
    if (agents.length === 0) throw new NoAgentFits('no agent is available', { retryable: true });
    if (path !== undefined) return [{ agent: named(path.agent, agents), skill: undefined }];
    const choices = agents.length > 1 ? fitting(message, agents) : [];
    return choices.length > 0 ? choices : [{ agent: this.#default(agents), skill: undefined }];
  }

  #default(agents: PlanRequest['agents']): AgentRegistration {
    const agent = defaultAgentOf(agents, this.#defaultAgent);
    if (agent !== undefined) return agent;
    if (this.#defaultAgent === undefined) throw new NoAgentFits('no agent fits this message', { available: agents });
    throw new NoAgentFits(`the default agent "${this.#defaultAgent}" is not available`, { available: agents, retryable: true });
  }
}

function named(name: string, agents: AgentRegistration[]): AgentRegistration {
  const agent = agents.find(candidate => candidate.name === name);
  if (agent !== undefined) return agent;
  // Any other text is not repeated, because it may have any length.
  throw new NoAgentFits(`the ${isAgentName(name) ? `agent "${name}"` : 'named agent'} is not available`, { available: agents });
}

function fitting(message: Message, agents: AgentRegistration[]): Choice[] {
  const words = wordsOf(message);
  const choices: Choice[] = [];
  for (const agent of agents) {
    const skill = agent.skills.find(candidate => names(words, candidate));
    if (skill !== undefined) choices.push({ agent, skill });
    if (choices.length === PLAN_AGENTS_MAX) break;
  }
  return choices;
}

/** Lower-case words of all text and data parts, and the text itself, which is needed for names of several words. */
function wordsOf(message: Message): { text: string; words: Set<string> } {
  const texts = message.parts.map(part => part.text ?? (part.data === undefined ? '' : JSON.stringify(part.data)));
  const text = texts.join(' ').toLowerCase();
  return { text, words: new Set(text.split(/[^\p{L}\p{N}_-]+/u).filter(word => word !== '')) };
}

function names(message: { text: string; words: Set<string> }, skill: AgentSkill): boolean {
  const labels = [skill.id, skill.name, ...skill.tags].map(name => name.toLowerCase()).filter(name => name !== '');
  return labels.some(label => (label.includes(' ') ? message.text.includes(label) : message.words.has(label)));
}

function describe(choices: Choice[]): string {
  const steps = choices.map(({ agent, skill }, index) => {
    const why = skill === undefined ? '' : ` (${skill.name})`;
    return `${index + 1}. ${titleCase(agent.name)}${why}`;
  });
  return `**🎯 Execution Plan**\n${steps.join('\n')}\n`;
}

function* tokens(text: string): Iterable<string> {
  let token = '';
  for (const { segment } of GRAPHEMES.segment(text)) {
    token += segment;
    if (token.length >= TOKEN_CHARS) {
      yield token;
      token = '';
    }
  }
  if (token !== '') yield token;
}

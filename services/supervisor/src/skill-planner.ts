import type { Message, Metadata } from '@hopline/a2a';
import { titleCase } from '@hopline/events';
import type { AgentEntry, AgentSkill } from '@hopline/log';
import { NoAgentFits, type Plan, type Planner, type PlanRequest } from './planner.ts';

/** Characters of one token of the plan, as a model would stream it (S0-11). */
const TOKEN_CHARS = 6;

type Choice = { agent: AgentEntry; skill: AgentSkill | undefined };

/**
 * Chooses agents without a model: the agent named in `metadata.agent`; the only live agent; else every agent with a skill that the message
 * names (S4-3). A message names a skill when its text has the skill's id, name, or one of its tags as a word.
 */
export class SkillPlanner implements Planner {
  async plan({ message, metadata, agents }: PlanRequest): Promise<Plan> {
    const choices = choose(message, metadata, agents);
    return { text: tokens(describe(choices)), agents: choices.map(({ agent }) => agent.name) };
  }
}

function choose(message: Message, metadata: Metadata, agents: AgentEntry[]): Choice[] {
  if (agents.length === 0) throw new NoAgentFits('no agent is available');
  const named = message.metadata?.agent ?? metadata.agent;
  if (named !== undefined) {
    const agent = agents.find(({ name }) => name === named);
    if (agent === undefined) throw new NoAgentFits('the agent named in metadata.agent is not available');
    return [{ agent, skill: undefined }];
  }
  const [only] = agents;
  if (agents.length === 1) return [{ agent: only!, skill: undefined }];
  const words = wordsOf(message);
  const choices = agents.flatMap(agent => {
    const skill = agent.skills.find(candidate => names(words, candidate));
    return skill === undefined ? [] : [{ agent, skill }];
  });
  if (choices.length > 0) return choices;
  const available = agents.map(({ name }) => name).join(', ');
  throw new NoAgentFits(`no skill of the available agents (${available}) fits this message; name one in metadata.agent`);
}

/** Lower-case words of all text and data parts, and the text itself for names of several words. */
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
  for (const { segment } of new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)) {
    token += segment;
    if (token.length >= TOKEN_CHARS) {
      yield token;
      token = '';
    }
  }
  if (token !== '') yield token;
}

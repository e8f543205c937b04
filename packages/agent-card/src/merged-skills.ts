import type { AgentSkill } from '@hopline/a2a';

/** An agent, as it registers itself. */
export type CardAgent = { name: string; description: string; skills: readonly AgentSkill[] };

/**
 * The skills of all agents, in their order. A repeated id or name is qualified by the agent's name. Members that a card
 * requires are filled in: a description, and a tag ([A2A 1.0] AgentSkill).
 */
export function mergedSkills(agents: readonly CardAgent[]): AgentSkill[] {
  const ids = new Set<string>();
  const names = new Set<string>();
  return agents.flatMap(({ name: agent, skills }) =>
    skills.map(skill => ({
      ...skill,
      id: firstFree(ids, skill.id, `${agent}.${skill.id}`),
      name: firstFree(names, skill.name, `${skill.name} (${agent})`),
      description: skill.description || skill.name,
      tags: skill.tags.length > 0 ? skill.tags : [agent],
    })),
  );
}

function firstFree(taken: Set<string>, plain: string, qualified: string): string {
  let free = taken.has(plain) ? qualified : plain;
  for (let count = 2; taken.has(free); count += 1) free = `${qualified} ${count}`;
  taken.add(free);
  return free;
}

import type { AgentSkill } from './agent-card.ts';

/** An agent behind the door, as it announces itself. */
export type CardAgent = { name: string; description: string; skills: readonly AgentSkill[] };

/**
 * What the agents behind the door can do, in their order. An id or a name that an earlier skill has is told apart by the agent's name. What a card must have is filled in:
 * a description, and a tag ([A2A 1.0] AgentSkill).
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

import type { AgentSkill } from '@hopline/a2a';
import type { AgentEntry } from '@hopline/log';

/** What the agents behind the door can do, by agent and id; an id that two agents have is told apart by the agent's name. */
export function mergedSkills(agents: readonly AgentEntry[]): AgentSkill[] {
  const taken = new Set<string>();
  return agents.flatMap(agent =>
    agent.skills.map(skill => {
      const id = taken.has(skill.id) ? `${agent.name}.${skill.id}` : skill.id;
      taken.add(id);
      return { ...skill, id };
    }),
  );
}

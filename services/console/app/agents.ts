import { useEffect, useState } from 'preact/hooks';
import type { Connection } from './connection.ts';

type Skill = { id: string; name: string; description: string; examples: readonly string[] };
export type Agent = { name: string; description: string; isLive: boolean; isDefault: boolean; skills: readonly Skill[] };

type Listed = { name: string; description: string; skills: { id: string; name: string }[]; state: string; default: boolean };
type Card = { skills?: { id: string; description?: string; examples?: string[] }[] };

/** The agents, with the descriptions and examples of their skills from the card of the cluster. */
function agentsOf(listed: readonly Listed[], { skills: described = [] }: Card): Agent[] {
  const byId = new Map(described.map(skill => [skill.id, skill]));
  return listed.map(({ name, description, skills, state, default: isDefault }) => ({
    name,
    description,
    isLive: state === 'live',
    isDefault,
    skills: skills.map(({ id, name: title }) => {
      const { description: about = '', examples = [] } = byId.get(id) ?? {};
      return { id, name: title, description: about, examples };
    }),
  }));
}

/** The agents of the cluster; empty until they have loaded. A page can send a message before that: the supervisor then chooses by skills. */
export function useAgents(connection: Connection): Agent[] {
  const [agents, setAgents] = useState<Agent[]>([]);
  useEffect(() => {
    let isCurrent = true;
    const list = connection.json<{ agents: Listed[] }>('/api/agents');
    const card = connection.json<Card>('/api/.well-known/agent-card.json').catch((): Card => ({}));
    Promise.all([list, card]).then(
      ([{ agents: listed }, described]) => {
        if (isCurrent) setAgents(agentsOf(listed, described));
      },
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, []);
  return agents;
}

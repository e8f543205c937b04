import type { CardReport } from '@hopline/a2a';
import { cardReport, decodeCardReport } from '@hopline/agent-card';
import { useEffect, useState } from 'preact/hooks';
import type { Connection } from './connection.ts';

type Skill = { id: string; name: string; description: string; tags: readonly string[]; examples: readonly string[] };
export type Agent = {
  name: string;
  description: string;
  isLive: boolean;
  isDefault: boolean;
  skills: readonly Skill[];
  /** Why a live agent does not answer, or its turns fail. */
  fault?: string;
  /** The card of the agent's own server. */
  card?: CardReport;
};

type ListedSkill = { id: string; name: string };
type Listed = Pick<Agent, 'name' | 'description'> & {
  skills: ListedSkill[];
  state: string;
  fault?: string;
  failing?: string;
  card?: unknown;
  default: boolean;
};
type DescribedSkill = { id: string; description?: string; tags?: string[]; examples?: string[] };
type Card = { skills?: DescribedSkill[] };

/** The agents of the cluster, and its own card. `agents` is undefined until both are read. */
export type AgentDirectory = { agents: Agent[] | undefined; cluster: CardReport | undefined; fault: string };

const NO_AGENTS: Agent[] = [];

/** The agents, with the descriptions and examples of their skills from the card of the cluster. */
export function agentsOf(listed: readonly Listed[], { skills: described = [] }: Card): Agent[] {
  const byId = new Map(described.map(skill => [skill.id, skill]));
  return listed.map(({ name, description, skills, state, fault, failing, card, default: isDefault }) => {
    const report = decodeCardReport(card);
    const problem = fault === undefined ? failing && `its last turns failed: ${failing}` : `does not answer: ${fault}`;
    return {
      name,
      description,
      isLive: state === 'live',
      isDefault,
      ...(problem !== undefined && { fault: problem }),
      ...(report !== undefined && { card: report }),
      skills: skills.map(({ id, name: title }) => {
        // The card qualifies an id that two agents have by the name of the second one.
        const { description: about = '', tags = [], examples = [] } = byId.get(`${name}.${id}`) ?? byId.get(id) ?? {};
        return { id, name: title, description: about, tags, examples };
      }),
    };
  });
}

/** Reads the agents once. A page may be opened while ingress starts. */
export function useAgentDirectory(connection: Connection): AgentDirectory {
  const [directory, setDirectory] = useState<AgentDirectory>({ agents: undefined, cluster: undefined, fault: '' });
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    const list = connection.jsonAnswered<{ agents: Listed[] }>('/api/agents', signal);
    const card = connection.jsonAnswered<Card>('/api/.well-known/agent-card.json', signal).catch(() => undefined);
    Promise.all([list, card]).then(
      ([{ agents: listed }, described]) => {
        if (signal.aborted) return;
        const cluster = described && cardReport(described);
        setDirectory({ agents: agentsOf(listed, described ?? {}), cluster, fault: '' });
      },
      (error: Error) => {
        if (!signal.aborted) setDirectory({ agents: undefined, cluster: undefined, fault: error.message });
      },
    );
    return () => stop.abort();
  }, []);
  return directory;
}

/** The agents of the cluster; empty until they have loaded. A page can send a message before that: the supervisor then chooses by skills. */
export function useAgents(connection: Connection): Agent[] {
  return useAgentDirectory(connection).agents ?? NO_AGENTS;
}

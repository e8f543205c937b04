import type { AgentSkill } from '@hopline/a2a';
import type { AgentEntry, KeyValue } from '@hopline/log';

/** What the agents behind this ingress can do, for its card: their announcements, merged. */
export class SkillDirectory {
  readonly #agents = new Map<string, AgentEntry>();

  /** Follows the registry until `signal` aborts; resolves when what stands in it has been read once. */
  async follow(agents: KeyValue<AgentEntry>, signal: AbortSignal, fault: (error: unknown) => void): Promise<void> {
    const ready = Promise.withResolvers<void>();
    void (async () => {
      for await (const change of agents.watch(signal)) {
        if (change.type === 'ready') ready.resolve();
        else if (change.value === undefined) this.#agents.delete(change.key);
        else this.#agents.set(change.key, change.value);
      }
    })().catch(error => {
      ready.reject(error);
      fault(error);
    });
    await ready.promise;
  }

  /** Skills by agent and id; an id that two agents have is told apart by the agent's name. */
  skills(): AgentSkill[] {
    const agents = [...this.#agents.values()].sort((a, b) => a.name.localeCompare(b.name, 'en'));
    const taken = new Set<string>();
    return agents.flatMap(agent =>
      agent.skills.map(skill => {
        const id = taken.has(skill.id) ? `${agent.name}.${skill.id}` : skill.id;
        taken.add(id);
        return { ...skill, id };
      }),
    );
  }
}

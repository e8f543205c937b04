import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import type { ListedProcess } from './run-file.ts';

const POLL_MS = 2000;
const PROBE_MS_MAX = 2000;

/** State of one agent: `fault` is null while it can work, else a clause that follows its name. `isUp`: its process is ready. */
export type AgentState = { name: string; isUp: boolean; fault: string | null };

/** The states of all agents: whether each process runs, and what its /readyz lists as degraded. */
export async function agentStates(cluster: Cluster): Promise<AgentState[]> {
  const agents = cluster.list().filter(({ agent }) => agent !== undefined);
  return Promise.all(agents.map(async process => ({ name: process.agent?.name ?? '', ...(await stateOf(process)) })));
}

async function stateOf({ pid, url, ending, agent }: ListedProcess): Promise<Omit<AgentState, 'name'>> {
  if (pid === null) return { isUp: false, fault: `does not run (${ending ?? 'starting'})` };
  let body: { degraded?: { check: string; reason: string }[] };
  try {
    const response = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(PROBE_MS_MAX) });
    const text = await response.text();
    if (response.status !== 200) return { isUp: false, fault: 'is not ready' };
    body = JSON.parse(text);
  } catch {
    return { isUp: false, fault: 'is not ready' };
  }
  const reason = body.degraded?.find(({ check }) => check === 'agent')?.reason;
  return { isUp: true, fault: reason === undefined ? null : faultClause(reason, agent?.target ?? '') };
}

/** @param reason a code such as ECONNREFUSED, or the name of an error */
export function faultClause(reason: string, target: string): string {
  if (reason === 'pending') return `has not answered yet (${target})`;
  const isProgram = reason === 'ENOENT' || reason === 'EACCES';
  return `${isProgram ? 'cannot be started' : 'cannot be reached'} (${reason} ${target})`;
}

/**
 * Reports each change of an agent whose process runs until `signal` aborts; the cluster reports processes that end. `known` is what
 * was reported before.
 */
export async function watchAgents(
  cluster: Cluster,
  known: readonly AgentState[],
  onChange: (state: AgentState) => void,
  signal: AbortSignal,
): Promise<void> {
  const faults = new Map(known.map(({ name, fault }) => [name, fault]));
  while (!signal.aborted) {
    await sleep(POLL_MS, undefined, { signal, ref: false }).catch(() => {});
    for (const state of signal.aborted ? [] : await agentStates(cluster)) {
      if (signal.aborted || !state.isUp || faults.get(state.name) === state.fault) continue;
      faults.set(state.name, state.fault);
      onChange(state);
    }
  }
}

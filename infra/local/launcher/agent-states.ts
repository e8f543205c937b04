import { setTimeout as sleep } from 'node:timers/promises';
import { type ProcessState, processState } from '@hopline/local-cluster';
import type { Cluster } from './cluster.ts';

const POLL_MS = 2000;
const START_POLL_MS = 200;

/** `fault` is null while the agent can work. */
export type AgentState = ProcessState & { name: string };

/** The states of all agents: whether each process runs, and which dependencies its /readyz lists as degraded. */
export async function agentStates(cluster: Cluster): Promise<AgentState[]> {
  const agents = cluster.list().filter(({ agent }) => agent !== undefined);
  return Promise.all(
    agents.map(async process => {
      const state = await processState(process);
      // On a slow machine a process that is still loading does not answer.
      const isLoading = !state.isReady && process.pid !== null && process.restarts === 0;
      return { name: process.agent?.name ?? '', ...state, isStarting: state.isStarting || isLoading };
    }),
  );
}

/** Resolves with the states when no agent is starting any more, or after `msMax`. */
export async function startedAgents(cluster: Cluster, msMax: number, signal: AbortSignal): Promise<AgentState[]> {
  const end = performance.now() + msMax;
  for (;;) {
    const states = await agentStates(cluster);
    if (!states.some(({ isStarting }) => isStarting) || performance.now() > end || signal.aborted) return states;
    await sleep(START_POLL_MS, undefined, { signal }).catch(() => {});
  }
}

/**
 * Reports each change of an agent whose process runs, until `signal` aborts. Processes that end are reported by the cluster. `known`: the
 * states reported so far.
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
      if (signal.aborted || !state.isReady || state.isStarting || faults.get(state.name) === state.fault) continue;
      faults.set(state.name, state.fault);
      onChange(state);
    }
  }
}

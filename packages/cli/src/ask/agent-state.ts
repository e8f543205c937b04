import type { ListedAgent } from '@hopline/client';

type Condition = Pick<ListedAgent, 'fault' | 'failing'> & { state: string };

/** The state of an agent, and what is wrong with a live one. */
export function agentState({ state, fault, failing }: Condition): string {
  if (fault !== undefined) return `${state}, does not answer (${fault})`;
  return failing === undefined ? state : `${state}, its last turns failed (${failing})`;
}

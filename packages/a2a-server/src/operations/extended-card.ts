import { A2AError } from '@hopline/a2a';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';

/**
 * GetExtendedAgentCard, agent/getAuthenticatedExtendedCard. If there is no card, 1.0 requires UNSUPPORTED_OPERATION ([A2A 1.0] 3.3.4); 0.3
 * has its own error.
 */
export async function extendedCard({ extendedCard }: A2AServer, { dialect, caller }: OperationContext): Promise<OperationResult> {
  if (extendedCard !== undefined) return extendedCard(caller, dialect.name);
  throw new A2AError(dialect.name === '1.0' ? 'UNSUPPORTED_OPERATION' : 'EXTENDED_AGENT_CARD_NOT_CONFIGURED');
}

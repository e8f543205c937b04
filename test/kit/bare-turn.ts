import type { Turn } from '@hopline/agent';

/** A first turn with a short message, for agents that run without a cluster. */
export function bareTurn(more: Partial<Turn> = {}): Turn {
  return {
    taskId: 't',
    contextId: 'c',
    message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] },
    metadata: {},
    history: [],
    attempt: 1,
    trace: {},
    signal: new AbortController().signal,
    ...more,
  };
}

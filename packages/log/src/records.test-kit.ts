import type { AgentRecord, FactRecord, Work } from '@hopline/events';

export function inputRecord(n: number, text = `token ${n}`): AgentRecord {
  const from = { id: 'call-1', agent: 'argocd', turn: 1, attempt: 1 };
  return { v: 1, at: 1_790_000_000_000 + n, from, n, inputs: [{ kind: 'text', lane: 'answer', tokens: [text] }] };
}

export function factRecord(taskId: string, generation: number, startSeq = 0, text = 'x'): FactRecord {
  const at = 1_790_000_000_000 + generation;
  const status = { state: 'TASK_STATE_WORKING', timestamp: new Date(at).toISOString() } as const;
  return {
    v: 1,
    facts: [
      {
        kind: 'status.changed',
        at,
        generation,
        event: { statusUpdate: { taskId, contextId: 'context', status, metadata: { text } } },
      },
    ],
    aggregate: {
      taskId,
      contextId: 'context',
      state: 'TASK_STATE_WORKING',
      generation,
      at,
      role: 'supervisor',
      profile: 'caipe',
      turn: 1,
      messageIds: [],
      lanes: {},
      calls: {},
      producers: {},
      foldedSeq: generation,
    },
    startSeq,
    startStoredAt: 1_790_000_000_001,
  };
}

export function workItem(taskId: string): Work {
  const message = { messageId: `m-${taskId}`, role: 'ROLE_USER', parts: [{ text: 'hello' }] } as const;
  return { v: 1, taskId, contextId: 'context', turn: 1, profile: 'caipe', message: { ...message, parts: [...message.parts] } };
}

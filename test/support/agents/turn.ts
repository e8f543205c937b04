import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Part } from '@hopline/a2a';
import type { Agent, AgentEvent, Turn } from '@hopline/agent';

/** A turn as the sub-agent creates it. */
export function turnOf(parts: string | Part[], options: Partial<Turn> = {}): Turn {
  return {
    taskId: 'task-1',
    contextId: 'context-1',
    history: [],
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts: typeof parts === 'string' ? [{ text: parts }] : parts },
    metadata: {},
    attempt: 1,
    trace: {},
    signal: new AbortController().signal,
    ...options,
  };
}

/** The events of a turn as clients see them, without the cause of a failure, which is only for spans and is checked here. */
export async function eventsOf(agent: Agent, parts: string | Part[], options: Partial<Turn> = {}): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  for await (const event of agent.run(turnOf(parts, options))) {
    if (event.type !== 'failed') events.push(event);
    else {
      const { cause, ...shown } = event;
      assert.match(cause ?? 'none', /^[a-z0-9_]{1,40}$/);
      events.push(shown);
    }
  }
  return events;
}

/** The answer folded from the events. */
export function textOf(events: readonly AgentEvent[]): string {
  return events.reduce(
    (text, event) => (event.type === 'text' ? text + event.text : event.type === 'snapshot' ? event.text : text),
    '',
  );
}

export function lastOf<T extends AgentEvent['type']>(events: readonly AgentEvent[], type: T): Extract<AgentEvent, { type: T }> {
  const last = events.at(-1);
  if (last?.type !== type) throw new Error(`the turn ended with ${JSON.stringify(last)}, not with ${type}`);
  return last as Extract<AgentEvent, { type: T }>;
}

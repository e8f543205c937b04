import { isObject } from '@hopline/a2a';
import type { AgentEvent } from './agent.ts';
import { AgentMisuse, kindOf } from './misuse.ts';

const KINDS: ReadonlySet<unknown> = new Set<AgentEvent['type']>([
  'text',
  'text-end',
  'step',
  'snapshot',
  'tool',
  'progress',
  'artifact',
  'auth-required',
  'interrupted',
  'done',
  'failed',
]);

/** What `run` yielded as an event: a string is text. Throws AgentMisuse for anything that is neither text nor made by one of the constructors. */
export function checkEvent(yielded: unknown): AgentEvent {
  if (typeof yielded === 'string') return { type: 'text', text: yielded };
  if (typeof yielded !== 'object' || yielded === null || !('type' in yielded) || !KINDS.has(yielded.type)) {
    throw new AgentMisuse(
      `run yielded ${kindOf(yielded)}; yield a string, or what notice, artifact, data, needsInput or done make`,
    );
  }
  const event = yielded as AgentEvent;
  if ((event.type === 'text' || event.type === 'snapshot') && typeof event.text !== 'string')
    throw new AgentMisuse(`run yielded text that is ${kindOf(event.text)}`);
  if (event.type === 'tool') checkTool(event);
  if (event.type === 'artifact' && !areParts(event.artifact?.parts))
    throw new AgentMisuse('run yielded an artifact without parts; make it with artifact()');
  const hasMessage = event.type === 'progress' || event.type === 'auth-required' || event.type === 'interrupted';
  if (hasMessage && !areParts(event.message?.parts))
    throw new AgentMisuse(`run yielded ${event.type} without a message; make it with notice() or needsInput()`);
  return event;
}

function areParts(parts: unknown): boolean {
  return Array.isArray(parts) && parts.every(isObject);
}

function checkTool({ phase, callId, tool }: Extract<AgentEvent, { type: 'tool' }>): void {
  if ((phase !== 'start' && phase !== 'end') || typeof callId !== 'string' || typeof tool !== 'string')
    throw new AgentMisuse('run yielded a tool event without phase ("start" or "end"), callId and tool');
}

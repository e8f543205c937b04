import { type AgentEvent, AgentMisuse, checkEvent } from '@hopline/agent';

/**
 * One event of a frame. Throws AgentMisuse for an event that an agent's code may not yield. The host checks events as well, but a malicious
 * module may have taken over its host.
 */
export function readEvent(value: unknown): AgentEvent {
  const event = checkEvent(value);
  if (event.type === 'text') {
    if (!isTextOrAbsent(event.id) || !isTextOrAbsent(event.stream)) throw misfit(event);
  } else if (event.type === 'text-end') {
    if (typeof event.stream !== 'string') throw misfit(event);
  } else if (event.type === 'step') {
    if (typeof event.step !== 'string') throw misfit(event);
  } else if (event.type === 'failed') {
    if (typeof event.reason !== 'string' || !isTextOrAbsent(event.cause)) throw misfit(event);
  }
  if ('message' in event && event.message !== undefined && typeof event.message.messageId !== 'string') throw misfit(event);
  if (event.type === 'artifact' && typeof event.artifact.artifactId !== 'string') throw misfit(event);
  return event;
}

const isTextOrAbsent = (value: unknown) => value === undefined || typeof value === 'string';

const misfit = ({ type }: AgentEvent) => new AgentMisuse(`run yielded an event ${type} with a member of a wrong type`);

import type { Metadata, StreamResponse, Task } from '@hopline/a2a';
import type { AgentExtension } from './agent-card.ts';

/** Resume by cursor: RESUME-EXTENSION.md. */
export const RESUME_EXTENSION_URI = 'https://hopline.dev/extensions/resume/v1';

/** Member of an event's metadata where the extension is active; the field that A2A's draft 1.1 gives to Task and to both update events. */
const GENERATION_KEY = 'generation';

/** As the card declares it. `params` says where a cursor is read and how it is sent back. */
export const resumeExtension: AgentExtension = {
  uri: RESUME_EXTENSION_URI,
  description: 'Streams carry a cursor; a client that comes back with it gets exactly what follows, on any replica.',
  required: false,
  params: { cursor: 'id', resume: ['Last-Event-ID', 'cursor', 'last-event-id'], generation: 'metadata.generation' },
};

/** The event as clients see it where the extension is active. An answer that is a message belongs to no task, and has no generation. */
export function withGeneration(event: StreamResponse, generation: number): StreamResponse {
  if ('task' in event) return { task: taskWithGeneration(event.task, generation) };
  if ('statusUpdate' in event) return { statusUpdate: counted(event.statusUpdate, generation) };
  if ('artifactUpdate' in event) return { artifactUpdate: counted(event.artifactUpdate, generation) };
  return event;
}

/** `generation`: of the newest event in it. */
export function taskWithGeneration(task: Task, generation: number): Task {
  return counted(task, generation);
}

function counted<T extends { metadata?: Metadata }>(shown: T, generation: number): T {
  return { ...shown, metadata: { ...shown.metadata, [GENERATION_KEY]: generation } };
}

import type { Metadata, StreamResponse, Task } from '@hopline/a2a';
import type { AgentExtension } from './agent-card.ts';

/** URI of the extension for resuming by cursor, which RESUME-EXTENSION.md describes. */
export const RESUME_EXTENSION_URI = 'https://hopline.dev/extensions/resume/v1';

/**
 * Metadata key of an event when the extension is active; A2A's draft 1.1 has a field of this name on Task and on both update
 * events.
 */
const GENERATION_KEY = 'generation';

/** The declaration on the card. `params` states where clients find a cursor and how they send it back. */
export const resumeExtension: AgentExtension = {
  uri: RESUME_EXTENSION_URI,
  description: 'Streams have a cursor; a client that reconnects with it gets exactly what follows, from any replica.',
  required: false,
  params: { cursor: 'id', resume: ['Last-Event-ID', 'cursor', 'last-event-id'], generation: 'metadata.generation' },
};

/** Adds the generation to an event, for clients with the extension. A direct message belongs to no task and has none. */
export function withGeneration(event: StreamResponse, generation: number): StreamResponse {
  if ('task' in event) return { task: taskWithGeneration(event.task, generation) };
  if ('statusUpdate' in event) return { statusUpdate: withGenerationMetadata(event.statusUpdate, generation) };
  if ('artifactUpdate' in event) return { artifactUpdate: withGenerationMetadata(event.artifactUpdate, generation) };
  return event;
}

/** `generation`: the generation of the task's newest event. */
export function taskWithGeneration(task: Task, generation: number): Task {
  return withGenerationMetadata(task, generation);
}

function withGenerationMetadata<T extends { metadata?: Metadata }>(event: T, generation: number): T {
  return { ...event, metadata: { ...event.metadata, [GENERATION_KEY]: generation } };
}

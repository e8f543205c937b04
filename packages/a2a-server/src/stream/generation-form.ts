import type { StreamResponse, Task } from '@hopline/a2a';
import { DRAFT_EXTENSION_URI, RESUME_EXTENSION_URI, taskWithGeneration, withGeneration } from '@hopline/agent-card';

/** How generations appear in the events of a response. There is one object for each form, so that it can be the key of encoded events. */
export type GenerationForm = {
  /** `generation`: the generation of the event. */
  event(event: StreamResponse, generation: number): StreamResponse;
  /** `generation`: the generation of the newest event in the task. */
  task(task: Task, generation: number): Task;
};

/** `metadata.generation`, as the resume extension describes it. */
const METADATA: GenerationForm = { event: withGeneration, task: taskWithGeneration };

/** The members of A2A's draft 1.1. */
const DRAFT: GenerationForm = { event: withDraftGeneration, task: taskWithDraftGeneration };

const BOTH: GenerationForm = {
  event: (event, generation) => withDraftGeneration(withGeneration(event, generation), generation),
  task: (task, generation) => taskWithDraftGeneration(taskWithGeneration(task, generation), generation),
};

/** Undefined if no active extension adds generations. */
export function generationForm(extensions: readonly string[]): GenerationForm | undefined {
  const isDraft = showsTimeline(extensions);
  if (!extensions.includes(RESUME_EXTENSION_URI)) return isDraft ? DRAFT : undefined;
  return isDraft ? BOTH : METADATA;
}

/** Whether tasks of a response have a timeline. */
export function showsTimeline(extensions: readonly string[]): boolean {
  return extensions.includes(DRAFT_EXTENSION_URI);
}

function withDraftGeneration(event: StreamResponse, generation: number): StreamResponse {
  const counted = { generation: String(generation) };
  if ('statusUpdate' in event) return { statusUpdate: { ...event.statusUpdate, ...counted } };
  if ('artifactUpdate' in event) return { artifactUpdate: { ...event.artifactUpdate, ...counted } };
  return 'task' in event ? { task: createdTask(event.task, counted.generation) } : event;
}

/** Only the first event contains a task, and its timeline is in the task itself. */
function createdTask(task: Task, generation: string): Task {
  const messages = (task.history ?? []).map(message => ({ message, generation }));
  return { ...task, generation, timeline: [...messages, { status: task.status, generation }] };
}

/** `generation`: the generation of the newest event in the task. */
export function taskWithDraftGeneration(task: Task, generation: number): Task {
  return { ...task, generation: String(generation) };
}

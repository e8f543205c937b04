import { isInProgress, type Task, textOf } from '@hopline/a2a';
import type { Turn } from '@hopline/agent';
import { EventReader, type ReaderOptions } from './event-reader.ts';

/**
 * Whether a task begun by another attempt holds the whole text of its turn, from the first character. An agent need not keep its text in
 * the task; the task then has only the newest piece. The text is proved to be complete if it begins with what clients have seen, or if the
 * task has ended with results, because a task keeps its artifacts ([A2A 1.0] 3.7), but not its statuses.
 */
export function isWholeText(task: Task, { turn, options }: { turn: Turn; options: ReaderOptions }): boolean {
  const { shownText = '' } = turn;
  const isOver = !isInProgress(task.status.state) && task.status.state !== 'TASK_STATE_AUTH_REQUIRED';
  if (shownText === '') return isOver;
  const { answer, artifacts, ending } = textsOf(task, options);
  if ([answer, artifacts, ending].some(text => text.startsWith(shownText))) return true;
  return task.status.state === 'TASK_STATE_COMPLETED' && artifacts !== '';
}

/** The texts of a turn in a task: the texts of its statuses, of its artifacts, and of its last message. */
function textsOf(task: Task, options: ReaderOptions): { answer: string; artifacts: string; ending: string } {
  const reader = new EventReader({ ...options, onSkipped: () => {}, onCumulative: () => {} });
  reader.snapshot(task);
  if (isInProgress(task.status.state)) reader.end();
  else reader.status(task.status, task.metadata);
  const texts = { answer: '', artifacts: '', ending: '' };
  for (const event of reader.take()) {
    if (event.type === 'text') texts.answer += event.text;
    else if (event.type === 'snapshot') texts.answer = event.text;
    else if (event.type === 'artifact') texts.artifacts += textOf(event.artifact.parts);
    else if ('message' in event) texts.ending = textOf(event.message?.parts ?? []);
  }
  return texts;
}

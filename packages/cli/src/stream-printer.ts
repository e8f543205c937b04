import {
  type Artifact,
  isInterrupted,
  isTerminal,
  type Part,
  type StreamResponse,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskStatus,
  textOf,
} from '@hopline/a2a';
import type { StreamItem } from '@hopline/client';
import { artifactKind, CAIPE } from '@hopline/profiles';
import { Answer } from './answer.ts';
import type { Output } from './output.ts';

/** Of the plan only the complete version is printed. */
const NOT_PRINTED = CAIPE.plan.streaming.name;

export type PrinterOptions = {
  /** The stream begins within a task: what is first in it was shown before. */
  resumed?: boolean;
  /** A further message of a task: the task as it was comes first, and is not part of the answer. */
  further?: boolean;
};

/** Shows a task's stream to a person, or its answer alone to a pipe. */
export class StreamPrinter {
  readonly #output: Output;
  readonly #answer: Answer;
  #skipHead: boolean;
  #gap = false;

  constructor(output: Output, { resumed = false, further = false }: PrinterOptions = {}) {
    this.#output = output;
    this.#skipHead = further;
    const again = () => {
      output.answer('\n');
      output.warn('(an agent has started again and says something else: the answer begins anew)');
    };
    this.#answer = new Answer({ text: text => output.answer(text), again }, resumed);
  }

  print(item: StreamItem): void {
    if ('gap' in item) {
      this.#gap = true;
      this.#output.note('(some of the stream is not kept any more; here is the task as it is)');
    } else this.#event(item.event);
  }

  #event(event: StreamResponse): void {
    if ('message' in event) this.#output.answer(textOf(event.message.parts));
    else if ('statusUpdate' in event) this.#status(event.statusUpdate.taskId, event.statusUpdate.status);
    else if ('artifactUpdate' in event) this.#artifact(event.artifactUpdate);
    else this.printTask(event.task);
  }

  /** A task as it is: at the head of a stream, after a gap, or alone. */
  printTask({ id, artifacts = [], status }: Task): void {
    const answers = artifacts.filter(isAnswer);
    if (this.#skipHead && !this.#gap) this.#answer.skip(answers);
    else this.#answer.snapshot(answers);
    this.#skipHead = false;
    this.#status(id, status);
  }

  #artifact(update: TaskArtifactUpdateEvent): void {
    const { artifact } = update;
    if (isAnswer(artifact)) this.#answer.update(update);
    else if (artifact.name !== NOT_PRINTED) this.#output.note(textOf(artifact.parts).trim());
    for (const part of artifact.parts) if (part.text === undefined) this.#output.note(`(${descriptionOf(part)})`);
  }

  #status(taskId: string, { state, message }: TaskStatus): void {
    const name = state.replace('TASK_STATE_', '').toLowerCase().replace('_', ' ');
    const said = message === undefined ? '' : textOf(message.parts);
    if (isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED') this.#answer.end();
    if (state === 'TASK_STATE_COMPLETED') {
      // Agents exist that answer with their last status alone.
      if (this.#answer.shown === '') this.#output.answer(said);
      else if (said !== '' && !this.#answer.shown.endsWith(said)) this.#output.note(said.trim());
      this.#output.note(`task ${taskId} completed`);
      return;
    }
    const line = `task ${taskId} ${name}${said === '' ? '' : `: ${said.trim()}`}`;
    if (isTerminal(state) || isInterrupted(state)) this.#output.warn(line);
    else this.#output.note(line);
  }
}

function isAnswer({ name = '' }: Artifact): boolean {
  const kind = artifactKind(name);
  return kind === undefined || kind === 'answer' || kind === 'result';
}

function descriptionOf({ filename, mediaType, url }: Part): string {
  if (filename === undefined && url === undefined && mediaType === undefined) return 'data';
  return [filename ?? url ?? 'a file', ...(mediaType === undefined ? [] : [mediaType])].join(', ');
}

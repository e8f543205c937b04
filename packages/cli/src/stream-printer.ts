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
import { AnswerAssembler, type ArtifactLabel } from './answer-assembler.ts';
import type { Display } from './display.ts';

/** Not printed: the complete version of the plan repeats it as a whole. */
const PLAN_TOKENS = CAIPE.plan.streaming.name;

export type PrinterOptions = {
  /** The stream begins within a task whose first part was printed before. */
  resumed?: boolean;
  /** The message continues a task: the stream begins with the earlier turns, which are not part of this answer. */
  continued?: boolean;
};

/** Prints the stream of one task: the answer as text, states and progress as notes. */
export class StreamPrinter {
  readonly #display: Display;
  readonly #answer: AnswerAssembler;
  #skipHead: boolean;
  #gap = false;
  #headed = '';

  constructor(display: Display, { resumed = false, continued = false }: PrinterOptions = {}) {
    this.#display = display;
    this.#skipHead = continued;
    const sink = {
      text: (text: string, artifact: ArtifactLabel) => {
        this.#heading(artifact);
        display.answer(text);
      },
      restart: () => {
        display.answer('\n');
        display.warn('(an agent was restarted and its answer differs: the answer starts over)');
      },
      duplicate: (artifact: ArtifactLabel, characters: number) => {
        if (display.heading === undefined) return;
        this.#heading(artifact);
        display.note(`(${characters} characters, equal to the text streamed above)`);
      },
    };
    this.#answer = new AnswerAssembler(sink, resumed);
  }

  print(item: StreamItem): void {
    if ('gap' in item) {
      this.#gap = true;
      this.#display.note('(part of the stream has expired; the current state of the task follows)');
    } else this.#event(item.event);
  }

  #event(event: StreamResponse): void {
    if ('message' in event) this.#display.answer(textOf(event.message.parts));
    else if ('statusUpdate' in event) this.#status(event.statusUpdate.taskId, event.statusUpdate.status);
    else if ('artifactUpdate' in event) this.#artifact(event.artifactUpdate);
    else this.printTask(event.task);
  }

  /** Prints a complete task: the first event of a stream, the one after a gap, or the result of `get`. */
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
    else if (artifact.name !== PLAN_TOKENS) {
      this.#heading(artifact);
      this.#display.note(textOf(artifact.parts).trim());
    }
    for (const part of artifact.parts) if (part.text === undefined) this.#display.note(`(${descriptionOf(part)})`);
  }

  /** Prints a heading where the text of another artifact begins or continues. */
  #heading({ artifactId, name = artifactId, description = '' }: ArtifactLabel): void {
    const headed = `${artifactId} ${name}`;
    if (headed === this.#headed) return;
    this.#headed = headed;
    this.#display.heading?.(`── ${name}${description === '' ? '' : ` · ${description}`}`);
  }

  #status(taskId: string, { state, message }: TaskStatus): void {
    const name = state.replace('TASK_STATE_', '').toLowerCase().replace('_', ' ');
    const text = message === undefined ? '' : textOf(message.parts);
    if (isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED') this.#answer.end();
    this.#headed = '';
    if (state === 'TASK_STATE_COMPLETED') {
      // Some agents answer only in the message of their last status.
      if (this.#answer.printed === '') this.#display.answer(text);
      else if (text !== '' && !this.#answer.printed.endsWith(text)) this.#display.note(text.trim());
      this.#display.note(`task ${taskId} completed`);
      return;
    }
    const line = `task ${taskId} ${name}${text === '' ? '' : `: ${text.trim()}`}`;
    if (isTerminal(state) || isInterrupted(state)) this.#display.warn(line);
    else this.#display.note(line);
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

import {
  type Artifact,
  failureReason,
  isInProgress,
  isObject,
  isTerminal,
  type Metadata,
  type StreamResponse,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskStatus,
  textOf,
} from '@hopline/a2a';
import type { StreamItem } from '@hopline/client';
import { CAIPE, kindOfArtifact } from '@hopline/profiles';
import { AnswerAssembler, type ArtifactLabel } from './answer-assembler.ts';
import type { ArtifactFolder } from './artifact-folder.ts';
import type { Display } from './display.ts';
import { NamedArtifacts } from './named-artifacts.ts';

/** Name of artifacts that are not printed, because the complete version of the plan repeats them. */
const PLAN_TOKENS = CAIPE.plan.streaming.name;

const RESTARTS = {
  retry: '(an agent was restarted and its answer differs: the answer starts over)',
  whole: '(the complete answer differs from the text that was streamed, and follows)',
} as const;

export type PrinterOptions = {
  /** Set if the stream begins within a task whose first part was already printed. */
  resumed?: boolean;
  /** Set if the message continues a task: the stream begins with the earlier turns, which are not part of this answer. */
  continued?: boolean;
  /** Names of artifacts that are the answer, in addition to those of Hopline's profiles. */
  answerNames?: readonly string[];
  /** Set if the message is one of several: its task is named neither when it continues nor when it is completed. */
  inConversation?: boolean;
  /** How the user names one of these agents (separated by |), for a task that failed because no agent fits. */
  howToChoose?: (agents: string) => string;
  /** Saves the artifacts outside the answer. */
  folder?: ArtifactFolder | undefined;
};

/** Prints the stream of one task: the answer as text, other artifacts as a line each, states and progress as notes. */
export class StreamPrinter {
  readonly #display: Display;
  readonly #answer: AnswerAssembler;
  readonly #artifacts: NamedArtifacts;
  readonly #howToChoose: PrinterOptions['howToChoose'];
  readonly #inConversation: boolean;
  readonly #answerNames: readonly string[];
  #skipHead: boolean;
  #gap = false;
  #headed = '';
  /** The agent and call of the last printed text. */
  #writer: string | undefined;

  constructor(
    display: Display,
    { resumed = false, continued = false, answerNames = [], inConversation = false, howToChoose, folder }: PrinterOptions = {},
  ) {
    this.#howToChoose = howToChoose;
    this.#inConversation = inConversation;
    this.#display = display;
    this.#answerNames = answerNames;
    this.#artifacts = new NamedArtifacts(display, folder);
    this.#skipHead = continued;
    const sink = {
      text: (text: string, artifact: ArtifactLabel) => {
        this.#heading(artifact);
        this.#separate(artifact);
        display.answer(text);
      },
      restart: (cause: 'retry' | 'whole') => {
        display.answer('\n');
        display.warn(RESTARTS[cause]);
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

  /** Prints the texts that wait for a later part of the turn. */
  end(): void {
    this.#answer.end();
    this.#artifacts.end();
  }

  #event(event: StreamResponse): void {
    if ('message' in event) this.#display.answer(textOf(event.message.parts));
    else if ('statusUpdate' in event)
      this.#status(event.statusUpdate.taskId, event.statusUpdate.status, event.statusUpdate.metadata);
    else if ('artifactUpdate' in event) this.#artifact(event.artifactUpdate);
    else this.printTask(event.task);
  }

  /** Prints a complete task: the first event of a stream, the one after a gap, or the result of `get`. */
  printTask({ id, artifacts = [], status, metadata }: Task): void {
    const answers = artifacts.filter(artifact => this.#roleOf(artifact) === 'answer');
    const named = artifacts.flatMap(artifact => this.#besideAnswer(artifact) ?? []);
    if (this.#skipHead && !this.#gap) {
      this.#answer.skip(answers);
      this.#artifacts.skip(named);
    } else {
      this.#answer.snapshot(answers);
      this.#artifacts.snapshot(named);
    }
    this.#skipHead = false;
    this.#status(id, status, metadata);
  }

  #artifact(update: TaskArtifactUpdateEvent): void {
    const { artifact } = update;
    const role = this.#roleOf(artifact);
    if (role === 'answer') this.#answer.update(update);
    else if (role === 'progress' && artifact.name !== PLAN_TOKENS) this.#note(artifact);
    const beside = this.#besideAnswer(artifact);
    if (beside !== undefined) this.#artifacts.update({ ...update, artifact: beside });
  }

  /** Parts of an artifact outside the answer: all parts of a named artifact, and files and data within an answer. */
  #besideAnswer(artifact: Artifact): Artifact | undefined {
    const role = this.#roleOf(artifact);
    if (role === 'named') return artifact;
    const parts = artifact.parts.filter(({ text }) => text === undefined);
    return role === 'progress' || parts.length === 0 ? undefined : { ...artifact, parts };
  }

  /** An artifact whose name no profile knows is not part of the answer: it is a file, data or a report of an agent. */
  #roleOf(artifact: Artifact): 'answer' | 'named' | 'progress' {
    const kind = kindOfArtifact(artifact);
    const { name = '' } = artifact;
    if (kind === 'answer' || kind === 'result' || name === '' || this.#answerNames.includes(name)) return 'answer';
    return kind === undefined ? 'named' : 'progress';
  }

  #note(artifact: Artifact): void {
    const text = textOf(artifact.parts).trim();
    // The last chunk of progress is empty.
    if (text === '') return;
    this.#heading(artifact);
    this.#display.note(text);
  }

  /** Prints a heading when the text of another artifact begins or continues. */
  #heading({ artifactId, name = artifactId, description = '' }: ArtifactLabel): void {
    const headed = `${artifactId} ${name}`;
    if (headed === this.#headed) return;
    this.#headed = headed;
    this.#display.heading?.(`── ${name}${description === '' ? '' : ` · ${description}`}`);
  }

  /** Starts the text of another agent on a new line. Readers of a pipe that need every byte use --json. */
  #separate({ metadata }: ArtifactLabel): void {
    const { sourceAgent, toolCallId } = metadata ?? {};
    const writer = typeof sourceAgent === 'string' ? JSON.stringify([sourceAgent, toolCallId]) : undefined;
    if (writer === undefined) return;
    if (this.#writer !== undefined && writer !== this.#writer) this.#display.endLine?.();
    this.#writer = writer;
  }

  #status(taskId: string, status: TaskStatus, metadata: Metadata | undefined): void {
    const { state, message } = status;
    const name = state.replace('TASK_STATE_', '').toLowerCase().replace('_', ' ');
    const text = message === undefined ? '' : textOf(message.parts);
    if (isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED') this.end();
    this.#headed = '';
    if (state === 'TASK_STATE_COMPLETED') {
      // Some agents answer only in the message of their last status.
      if (this.#answer.printed === '') this.#display.answer(text);
      else if (text !== '' && !this.#answer.printed.endsWith(text)) this.#display.note(text.trim());
      if (this.#answer.printed === '' && text === '' && this.#artifacts.count > 0)
        this.#display.warn('(the answer has no text; --answer NAME prints an artifact of that name, --out DIR saves all)');
      if (!this.#inConversation) this.#display.note(`task ${taskId} completed`);
      return;
    }
    const reason = isInProgress(state) ? text.trim() : failureReason(status, metadata);
    const line = `${this.#inConversation ? '' : `task ${taskId} `}${name}${reason === '' ? '' : `: ${reason}`}`;
    if (!isInProgress(state)) {
      this.#display.warn(line);
      const agents = choicesIn(metadata);
      if (agents.length > 0 && this.#howToChoose) this.#display.warn(this.#howToChoose(agents.join('|')));
    } else if (!this.#inConversation || text !== '') this.#display.note(line);
  }
}

/** The agents that a server names when none fits a message (docs/reference/wire.md). */
function choicesIn(metadata: Metadata | undefined): string[] {
  const choose = metadata?.choose;
  const agents = isObject(choose) && Array.isArray(choose.agents) ? choose.agents : [];
  return agents.filter(name => typeof name === 'string' && /^[a-z0-9-]{1,32}$/.test(name));
}

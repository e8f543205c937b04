import {
  type Artifact,
  approvalRequestOf,
  failureReason,
  isInProgress,
  isObject,
  type Metadata,
  type StreamResponse,
  type Task,
  type TaskStatus,
  textOf,
} from '@hopline/a2a';
import type { StreamItem } from '@hopline/client';
import { CAIPE, kindOfArtifact } from '@hopline/profiles';
import { type TextLabel, type ViewChange, ViewFold } from '@hopline/task-view';
import { AnswerOrder } from './answer-order.ts';
import type { ArtifactFolder } from './artifact-folder.ts';
import type { Display } from './display.ts';
import { fileReport } from './file-report.ts';

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
  readonly #fold: ViewFold;
  readonly #order: AnswerOrder;
  readonly #folder: ArtifactFolder | undefined;
  readonly #howToChoose: PrinterOptions['howToChoose'];
  readonly #inConversation: boolean;
  readonly #isResumed: boolean;
  readonly #answerNames: readonly string[];
  /** Artifacts by id, for headings. */
  readonly #artifacts = new Map<string, Pick<Artifact, 'artifactId' | 'name' | 'description'>>();
  #restart: keyof typeof RESTARTS = 'retry';
  #hasAnswer = false;
  #hasFiles = false;
  #headed = '';
  /** The agent and call of the last printed text. */
  #writer: string | undefined;

  constructor(
    display: Display,
    { resumed = false, continued = false, answerNames = [], inConversation = false, howToChoose, folder }: PrinterOptions = {},
  ) {
    this.#howToChoose = howToChoose;
    this.#inConversation = inConversation;
    this.#isResumed = resumed;
    this.#display = display;
    this.#answerNames = answerNames;
    this.#folder = folder;
    this.#fold = new ViewFold({ resumed, continues: continued, answerNames });
    this.#order = new AnswerOrder({
      text: (text, label) => {
        const artifact = this.#artifacts.get(label.id);
        if (artifact !== undefined) this.#heading(artifact);
        this.#separate(label);
        this.#hasAnswer = true;
        display.answer(text);
      },
      restart: () => {
        display.answer('\n');
        display.warn(RESTARTS[this.#restart]);
      },
    });
  }

  print(item: StreamItem): void {
    if ('event' in item) this.#event(item.event);
    else {
      this.#fold.add(item);
      this.#display.note('(part of the stream has expired; the current state of the task follows)');
    }
  }

  /** Prints the texts that wait for a later part of the turn. */
  end(): void {
    this.#show(this.#fold.end());
  }

  #event(event: StreamResponse): void {
    if ('task' in event) this.printTask(event.task);
    else if ('artifactUpdate' in event) this.#artifact(event);
    else if ('message' in event) this.#show(this.#fold.add({ event }));
    else {
      const { taskId, status, metadata } = event.statusUpdate;
      this.#status(taskId, status, metadata, this.#fold.add({ event }));
    }
  }

  /** Prints a complete task: the first event of a stream, the one after a gap, or the result of `get`. */
  printTask(task: Task): void {
    for (const artifact of task.artifacts ?? []) this.#artifacts.set(artifact.artifactId, artifact);
    this.#status(task.id, task.status, task.metadata, this.#fold.add({ event: { task } }));
  }

  #artifact(event: Extract<StreamResponse, { artifactUpdate: unknown }>): void {
    const { artifact, lastChunk = false } = event.artifactUpdate;
    const kind = kindOfArtifact(artifact);
    const { artifactId, name = '', description } = artifact;
    this.#artifacts.set(artifactId, {
      artifactId,
      ...(name !== '' && { name }),
      ...(description !== undefined && { description }),
    });
    this.#restart = kind === 'result' ? 'whole' : 'retry';
    const changes = this.#fold.add({ event });
    this.#show(changes);
    if (kind === 'result' && lastChunk && !changes.some(isNewText)) this.#repeated(artifact);
    const isAside = kind !== undefined && kind !== 'answer' && kind !== 'result' && !this.#answerNames.includes(name);
    if (isAside && name !== PLAN_TOKENS) this.#note(artifact);
  }

  /** Prints texts and files. Notices and progress are printed as they arrive, and states by `#status`. */
  #show(changes: readonly ViewChange[]): void {
    this.#order.add(changes, () => this.#fold.view.texts);
    for (const change of changes) {
      if (change.kind !== 'file') continue;
      this.#hasFiles = true;
      const line = fileReport(change.file, this.#folder);
      if (this.#display.artifact === undefined) this.#display.note(line);
      else this.#display.artifact(line);
      // The content is in the folder, or is not needed.
      this.#fold.forgetFile(change.file.id);
    }
  }

  /** A whole answer that adds nothing to the texts. */
  #repeated(artifact: Artifact): void {
    const characters = this.#fold.view.answer.length;
    if (characters === 0 || this.#display.heading === undefined) return;
    this.#heading(artifact);
    this.#display.note(`(${characters} characters, equal to the text streamed above)`);
  }

  #note(artifact: Artifact): void {
    const text = textOf(artifact.parts).trim();
    // The last chunk of progress is empty.
    if (text === '') return;
    this.#heading(artifact);
    this.#display.note(text);
  }

  /** Prints a heading when the text of another artifact begins or continues. */
  #heading({ artifactId, name = artifactId, description = '' }: Pick<Artifact, 'artifactId' | 'name' | 'description'>): void {
    const headed = `${artifactId} ${name}`;
    if (headed === this.#headed) return;
    this.#headed = headed;
    this.#display.heading?.(`── ${name}${description === '' ? '' : ` · ${description}`}`);
  }

  /** Starts the text of another agent on a new line. Readers of a pipe that need every byte use --json. */
  #separate({ agent, callId }: TextLabel): void {
    if (agent === undefined) return;
    const writer = JSON.stringify([agent, callId]);
    if (this.#writer !== undefined && writer !== this.#writer) this.#display.endLine?.();
    this.#writer = writer;
  }

  #status(taskId: string, status: TaskStatus, metadata: Metadata | undefined, changes: readonly ViewChange[]): void {
    const { state, message } = status;
    const name = state.replace('TASK_STATE_', '').toLowerCase().replace('_', ' ');
    const text = message === undefined ? '' : textOf(message.parts);
    // A last message that is not the whole answer is about it.
    const isRemark = changes.some(change => isTextOf(change, message?.messageId)) && this.#fold.view.answer !== text;
    this.#show(isRemark ? changes.filter(change => !isTextOf(change, message?.messageId)) : changes);
    this.#headed = '';
    if (state === 'TASK_STATE_COMPLETED') {
      if (isRemark) this.#display.note(text.trim());
      if (!this.#hasAnswer && !this.#hasFiles && !isRemark && !this.#isResumed)
        this.#display.warn('(the answer is empty: no agent sent text, a file or a message)');
      if (!this.#hasAnswer && this.#hasFiles)
        this.#display.warn('(the answer has no text; --answer NAME prints an artifact of that name, --out DIR saves all)');
      if (!this.#inConversation) this.#display.note(`task ${taskId} completed`);
      return;
    }
    const reason = isInProgress(state) ? text.trim() : failureReason(status, metadata);
    const line = `${this.#inConversation ? '' : `task ${taskId} `}${name}${reason === '' ? '' : `: ${reason}`}`;
    if (!isInProgress(state)) {
      this.#display.warn(line);
      const approval = state === 'TASK_STATE_INPUT_REQUIRED' ? approvalRequestOf(message) : undefined;
      if (approval !== undefined) this.#display.warn(`${approval.tool} ${JSON.stringify(approval.arguments, null, 2)}`);
      const agents = choicesIn(metadata);
      if (agents.length > 0 && this.#howToChoose) this.#display.warn(this.#howToChoose(agents.join('|')));
    } else if (!this.#inConversation || text !== '') this.#display.note(line);
  }
}

function isNewText(change: ViewChange): boolean {
  return change.kind === 'text' || change.kind === 'text-restarted';
}

function isTextOf(change: ViewChange, id: string | undefined): boolean {
  return 'text' in change && change.text.id === id;
}

/** The agents that a server names when none fits a message (docs/reference/wire.md). */
function choicesIn(metadata: Metadata | undefined): string[] {
  const choose = metadata?.choose;
  const agents = isObject(choose) && Array.isArray(choose.agents) ? choose.agents : [];
  return agents.filter(name => typeof name === 'string' && /^[a-z0-9-]{1,32}$/.test(name));
}

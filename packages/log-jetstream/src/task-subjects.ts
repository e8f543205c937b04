import { isTaskId, isWriter, type Layouts, logSubject, RAW_PREFIX, rawSubject, type Writer } from '@hopline/events';
import { requireTaskId, requireWriter } from '@hopline/log';
import type { LogNames } from './names.ts';

/** Number of subjects of each kind that are remembered: more than a process has tasks in progress, and about 3 MB. */
const SUBJECTS_MAX = 4_096;

/** The task and the writer of an input, as its subject names them. */
type InputOrigin = { taskId: string; writer: Writer };

/**
 * The subjects of the tasks of one cluster. A subject contains a hash of the task id, and a task has thousands of records: computing and
 * checking the subject of each record cost a relay 1 µs per token. So subjects are computed once, and all of them are dropped when there
 * are too many.
 */
export class TaskSubjects {
  readonly #names: LogNames;
  readonly #layouts: () => Layouts;
  /** The layouts of the remembered subjects. */
  #known: Layouts;
  readonly #subjectsMax: number;
  readonly #facts = new Map<string, string>();
  readonly #inputs = new Map<string, string>();
  readonly #origins = new Map<string, InputOrigin>();

  constructor(names: LogNames, layouts: () => Layouts, subjectsMax = SUBJECTS_MAX) {
    this.#names = names;
    this.#layouts = layouts;
    this.#known = layouts();
    this.#subjectsMax = subjectsMax;
  }

  /** The subject of a task's facts. Throws TypeError for an id that cannot be a token. */
  ofFacts(taskId: string): string {
    this.#forgetOthers();
    const known = this.#facts.get(taskId);
    if (known !== undefined) return known;
    requireTaskId(taskId);
    return this.#remember(this.#facts, taskId, this.#names.subject(logSubject(taskId, this.#known)));
  }

  /** The subject of a task's inputs from one writer. Throws TypeError for an id or a writer that cannot be tokens. */
  ofInputs(taskId: string, writer: Writer): string {
    const key = `${taskId}.${writer}`;
    this.#forgetOthers();
    const known = this.#inputs.get(key);
    if (known !== undefined) return known;
    requireTaskId(taskId);
    requireWriter(writer);
    return this.#remember(this.#inputs, key, this.#names.subject(rawSubject(taskId, this.#known, writer)));
  }

  /**
   * The origin of an input. Undefined unless the subject is exactly that of the task and the writer. Any client may publish on any subject,
   * and an input in the wrong shard would make two relays write its task.
   */
  originOf(subject: string): InputOrigin | undefined {
    this.#forgetOthers();
    const known = this.#origins.get(subject);
    if (known !== undefined) return known;
    const [taskId = '', ...rest] = this.#tokensOf(subject);
    const writer = rest.join('.');
    if (!isTaskId(taskId) || !isWriter(writer) || subject !== this.ofInputs(taskId, writer)) return undefined;
    return this.#remember(this.#origins, subject, { taskId, writer });
  }

  /** The token that names the task in a subject of inputs, whether or not it is a valid id; empty if there is none. */
  taskIdIn(subject: string): string {
    return this.#tokensOf(subject)[0] ?? '';
  }

  /** The tokens after the shard. */
  #tokensOf(subject: string): string[] {
    return subject
      .slice(this.#names.subject(RAW_PREFIX).length + 1)
      .split('.')
      .slice(1);
  }

  /** An id whose time is ahead of this process's clock is in another layout if a layout that begins before that time was added. */
  #forgetOthers(): void {
    const layouts = this.#layouts();
    if (layouts === this.#known) return;
    this.#known = layouts;
    for (const subjects of [this.#facts, this.#inputs, this.#origins]) subjects.clear();
  }

  #remember<T>(subjects: Map<string, T>, key: string, value: T): T {
    if (subjects.size >= this.#subjectsMax) subjects.clear();
    subjects.set(key, value);
    return value;
  }
}

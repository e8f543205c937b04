import type { JsonObject } from '@hopline/a2a';
import { isVisible } from '@hopline/events';
import { decodeEnd, decodeFactsLine, decodeHeader, decodeInputLine, isProgress } from './decode-entry.ts';
import {
  type FactsEntry,
  type InputEntry,
  LINE_BYTES_MAX,
  RECORDS_MAX,
  TASK_FORMAT,
  TASK_FORMAT_VERSION,
  type TaskEnd,
  type TaskEntry,
  TaskFileError,
  type TaskHeader,
  type TaskProgress,
} from './format.ts';
import { decodeLine, FIRST_SUM, parse } from './json-line.ts';
import { type Line, linesOf } from './lines.ts';

/** Converts a line of one version of the format to the next version. The sum was checked before and is omitted. */
export type Upcast = (line: JsonObject) => JsonObject;

/** `UPCASTS[n]` converts version n + 1. Its length is the version of the format minus one. */
const UPCASTS: readonly Upcast[] = [];

export type ReadOptions = {
  /** True if a missing end is not an error. The entries then just stop. Default: false. */
  allowTruncated?: boolean;
  /** Set if the bytes continue a task whose earlier lines were already read (`findResumePoint`). */
  after?: { header: TaskHeader; progress: TaskProgress } | undefined;
  lineBytesMax?: number;
  recordsMax?: number;
  /** For tests of the conversion. */
  upcasts?: readonly Upcast[];
};

type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/**
 * The entries of a task file in order, each checked: sums, sequences, generations, counts. One line is in memory at a time. Throws
 * TaskFileError at the first wrong line; all earlier lines were correct.
 */
export async function* readTaskFile(bytes: Bytes, options: ReadOptions = {}): AsyncGenerator<TaskEntry, void> {
  for await (const { entry } of decodedLines(bytes, options)) yield entry;
}

/** Position at which a truncated file ends, for the writer that continues it. */
export type ResumePoint = {
  /** The task whose end is missing; absent if the file ends after a whole task or is empty. */
  open?: { header: TaskHeader; progress: TaskProgress };
  /** Headers of the tasks that are whole. */
  finished: TaskHeader[];
  /** Bytes up to the end of the last complete line, where the file is cut. */
  bytes: number;
};

/** Reads a file that may be truncated anywhere. Resolves with the position at which a writer can continue it. Throws TaskFileError. */
export async function findResumePoint(bytes: Bytes): Promise<ResumePoint> {
  const finished: TaskHeader[] = [];
  let end = 0;
  let open: ResumePoint['open'];
  for await (const { entry, header, progress, line } of decodedLines(bytes, { allowTruncated: true })) {
    end = line.end;
    open = { header, progress };
    if (entry.kind !== 'end') continue;
    finished.push(header);
    open = undefined;
  }
  return { ...(open && { open }), finished, bytes: end };
}

type DecodedEntry = { entry: TaskEntry; header: TaskHeader; progress: TaskProgress; line: Line };

async function* decodedLines(bytes: Bytes, options: ReadOptions): AsyncGenerator<DecodedEntry, void> {
  const { allowTruncated = false, lineBytesMax = LINE_BYTES_MAX, recordsMax = RECORDS_MAX, upcasts = UPCASTS } = options;
  let task = options.after && new TaskReader(recordsMax, upcasts, options.after);
  let last = 0;
  for await (const line of requireText(linesOf(bytes, lineBytesMax))) {
    if (!line.terminated) {
      if (allowTruncated) return;
      throw new TaskFileError('truncated', line.number, 'the file ends within this line');
    }
    last = line.number;
    task ??= new TaskReader(recordsMax, upcasts);
    const entry = task.read(line);
    yield { entry, header: task.header!, progress: task.progress, line };
    if (entry.kind === 'end') task = undefined;
  }
  if (last === 0 && options.after === undefined && !allowTruncated)
    throw new TaskFileError('not a task file', 0, 'the file is empty');
  if (task !== undefined && !allowTruncated) {
    throw new TaskFileError(
      'truncated',
      0,
      `the end of the task is missing after line ${last}: the file was cut, or its export has not ended`,
    );
  }
}

/** If the first line is not text, the file is not a damaged task file but another kind of file. */
async function* requireText(lines: AsyncIterable<Line>): AsyncGenerator<Line, void> {
  let isFirst = true;
  try {
    for await (const line of lines) {
      isFirst = false;
      yield line;
    }
  } catch (thrown) {
    if (!isFirst || !(thrown instanceof TaskFileError)) throw thrown;
    throw notATaskFile();
  }
}

const notATaskFile = () =>
  new TaskFileError('not a task file', 0, `not a task file: its first line must be a header of the format ${TASK_FORMAT}`);

export const NO_PROGRESS: TaskProgress = {
  sum: FIRST_SUM,
  inputs: 0,
  facts: 0,
  lastInputSeq: 0,
  lastFactsSeq: 0,
  generation: 0,
};

/** A position in a file, as text for a URL. */
export function encodeProgress(progress: TaskProgress): string {
  return Buffer.from(JSON.stringify(progress)).toString('base64url');
}

/** Undefined if the text is not a position in a file. */
export function decodeProgress(text: string): TaskProgress | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return isProgress(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the lines of one task, and checks that they follow each other correctly. */
class TaskReader {
  header: TaskHeader | undefined;
  progress: TaskProgress = NO_PROGRESS;
  readonly #recordsMax: number;
  readonly #upcasts: readonly Upcast[];
  #version = 0;

  constructor(recordsMax: number, upcasts: readonly Upcast[], after?: ReadOptions['after']) {
    this.#recordsMax = recordsMax;
    this.#upcasts = upcasts;
    if (after === undefined) return;
    // A writer continues only files of its own version.
    this.#version = upcasts.length + 1;
    this.header = after.header;
    this.progress = after.progress;
  }

  read({ text, number }: Line): TaskEntry {
    if (this.#version === 0) this.#version = this.#versionOf(text, number);
    const { value, sum } = decodeLine(text, number, this.progress.sum);
    const line = this.#upcasts.slice(this.#version - 1).reduce((converted, upcast) => upcast(converted), value);
    const entry = this.#decode(line, number);
    this.progress = { ...this.progress, sum };
    return entry;
  }

  #decode(line: JsonObject, number: number): TaskEntry {
    if (this.header === undefined) {
      this.header = decodeHeader(line, number);
      return { kind: 'header', header: this.header };
    }
    if (line.kind === 'input') return this.#input(decodeInputLine(line, number), number);
    if (line.kind === 'facts') return this.#facts(decodeFactsLine(line, number), number);
    if (line.kind === 'end') return this.#end(decodeEnd(line, number), number);
    throw new TaskFileError('malformed', number, '"kind" must be "input", "facts" or "end"');
  }

  #versionOf(text: string, number: number): number {
    const value = headerOf(text, number);
    const version = value.version;
    if (!Number.isSafeInteger(version) || Number(version) < 1) throw notATaskFile();
    const newest = this.#upcasts.length + 1;
    if (Number(version) > newest) {
      throw new TaskFileError(
        'newer',
        number,
        `the file has version ${version} of the format, and this Hopline reads versions up to ${newest}: use a newer Hopline`,
      );
    }
    return Number(version);
  }

  #input(entry: InputEntry, number: number): InputEntry {
    this.#require('inputs', number);
    const { lastInputSeq, inputs } = this.progress;
    if (entry.seq <= lastInputSeq)
      throw new TaskFileError('malformed', number, 'the sequence does not follow that of the previous input');
    this.progress = { ...this.progress, inputs: inputs + 1, lastInputSeq: entry.seq };
    return entry;
  }

  #facts(entry: FactsEntry, number: number): FactsEntry {
    this.#require('facts', number);
    const { lastFactsSeq, facts } = this.progress;
    const { aggregate } = entry.record;
    if (entry.seq <= lastFactsSeq)
      throw new TaskFileError('malformed', number, 'the sequence does not follow that of the previous facts');
    if (aggregate.taskId !== this.header!.taskId || aggregate.contextId !== this.header!.contextId) {
      throw new TaskFileError('malformed', number, 'the record belongs to a different task than the header');
    }
    const generation = this.#generationAfter(entry, number);
    this.progress = { ...this.progress, facts: facts + 1, lastFactsSeq: entry.seq, generation, state: aggregate.state };
    return entry;
  }

  /** Visible facts are numbered without gaps. A file whose beginning had expired may begin with any number. */
  #generationAfter(entry: FactsEntry, number: number): number {
    let { generation } = this.progress;
    const visible = entry.record.facts.filter(isVisible);
    const isStart = this.progress.facts === 0;
    const mayBegin = isStart && this.header!.partial?.includes('facts') === true;
    if (isStart && !mayBegin && entry.record.facts[0]?.kind !== 'task.created') {
      throw new TaskFileError('malformed', number, 'the facts do not begin with the creation of the task');
    }
    if (mayBegin) generation = (visible[0]?.generation ?? entry.generation + 1) - 1;
    for (const fact of visible) {
      if (fact.generation !== generation + 1 && fact.lostAfter !== generation) {
        throw new TaskFileError('malformed', number, `generation ${fact.generation} follows ${generation}: events are missing`);
      }
      generation = fact.generation;
    }
    if (entry.generation !== generation || entry.record.aggregate.generation !== generation) {
      throw new TaskFileError('malformed', number, `the generation after this record must be ${generation}`);
    }
    return generation;
  }

  #end(end: TaskEnd, number: number): TaskEnd {
    const { inputs, facts, lastInputSeq, lastFactsSeq, generation, state } = this.progress;
    const isWhole =
      end.inputs === inputs && end.facts === facts && end.lastInputSeq === lastInputSeq && end.lastFactsSeq === lastFactsSeq;
    if (!isWhole || (facts > 0 && (end.generation !== generation || end.state !== state))) {
      throw new TaskFileError('malformed', number, 'the end does not fit the records before it: lines are missing');
    }
    return end;
  }

  #require(kind: 'inputs' | 'facts', number: number): void {
    if (!this.header!.contains.includes(kind)) throw new TaskFileError('malformed', number, `the header names no ${kind}`);
    if (this.progress.inputs + this.progress.facts >= this.#recordsMax) {
      throw new TaskFileError('too long', number, `the task has more than ${this.#recordsMax} records`);
    }
  }
}

/** If the first line is not a header, this is another kind of file. If a later line is not the expected header, that line is damaged. */
function headerOf(text: string, number: number): JsonObject {
  try {
    const value = parse(text, number);
    if (value.format === TASK_FORMAT) return value;
  } catch (thrown) {
    if (number > 1) throw thrown;
  }
  throw number === 1 ? notATaskFile() : new TaskFileError('malformed', number, 'a header must follow the end of a task');
}

if (UPCASTS.length !== TASK_FORMAT_VERSION - 1) throw new Error('every earlier version needs an upcast');

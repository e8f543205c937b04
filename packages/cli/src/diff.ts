import { A2AError, codePoints, cutIndex, differingSpan } from '@hopline/a2a';
import type { StoredTask, TaskDifference, TaskMeasure } from '@hopline/replay';
import type { Output } from '@hopline/terminal';
import { EXIT, type ExitCode } from './exit-code.ts';
import { storedTasks, type TaskSources } from './stored-tasks.ts';
import { UsageError } from './usage-error.ts';

export type DiffCommand = Pick<TaskSources, 'subjects' | 'environment' | 'signal'> & { output: Output; json: boolean };

/** Characters before and after a difference that are printed with it. */
const CONTEXT_CHARS = 40;
/** Characters of a difference that are printed. */
const SHOWN_CHARS_MAX = 400;

/** `hopline diff`: compares two tasks. */
export async function diff({ subjects, output, json, ...sources }: DiffCommand): Promise<ExitCode> {
  if (subjects.length !== 2) throw new UsageError('diff takes two task ids or task files; see hopline diff --help');
  const { diffTasks } = await import('@hopline/replay');
  const [first, second] = [await readOne(subjects[0]!, sources), await readOne(subjects[1]!, sources)];
  const { same, differences, a, b } = diffTasks(first, second);
  if (json)
    output.line(JSON.stringify({ a: { taskId: first.taskId, ...a }, b: { taskId: second.taskId, ...b }, same, differences }));
  else {
    output.line(`A ${first.taskId}: ${measureOf(a)}`);
    output.line(`B ${second.taskId}: ${measureOf(b)}`);
    for (const difference of differences) for (const line of differenceLines(difference)) output.line(line);
    output.line(same ? 'same' : `${differences.length} ${differences.length === 1 ? 'part differs' : 'parts differ'}`);
  }
  return same ? EXIT.ok : EXIT.failed;
}

async function readOne(subject: string, sources: Pick<DiffCommand, 'environment' | 'signal'>): Promise<StoredTask> {
  const one = { subjects: [subject], all: false, since: undefined, sample: undefined };
  for await (const { task, name } of storedTasks('diff', { ...sources, ...one })) {
    if (!('unreadable' in task)) return task;
    throw new A2AError('INVALID_PARAMS', { detail: `${name}: ${task.unreadable}` });
  }
  throw new A2AError('TASK_NOT_FOUND');
}

function measureOf({ frames, chunks, tokens, characters, firstTextMs, totalMs, calls }: TaskMeasure): string {
  const first = firstTextMs === undefined ? '' : `, first text after ${firstTextMs} ms`;
  const called = calls.map(({ agent, ms }) => `, ${agent} ${ms === undefined ? 'open' : `${ms} ms`}`).join('');
  return `${tokens} tokens, ${characters} characters in ${chunks} chunks, ${frames} frames, ${totalMs} ms${first}${called}`;
}

/** The part in which two texts differ, with what stands around it. */
export function differenceLines({ name, a, b }: TaskDifference): string[] {
  if (a === undefined || b === undefined) return [`${name}: only in ${a === undefined ? 'B' : 'A'}: ${quoted(a ?? b ?? '')}`];
  const { start, aEnd, bEnd } = differingSpan(a, b);
  const from = cutIndex(a, Math.max(0, start - CONTEXT_CHARS));
  const part = (text: string, end: number) => quoted(text.slice(from, cutIndex(text, end + CONTEXT_CHARS)));
  const character = codePoints(a.slice(0, start)) + 1;
  return [`${name}: differs from character ${character}`, `  A ${part(a, aEnd)}`, `  B ${part(b, bEnd)}`];
}

/** In one line. */
function quoted(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text);
}

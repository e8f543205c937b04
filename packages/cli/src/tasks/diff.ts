import { A2AError, codePoints, cutIndex, differingSpan } from '@hopline/a2a';
import type { StoredTask, TaskDifference, TaskMeasure } from '@hopline/replay';
import type { Output } from '@hopline/terminal';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { pair } from '../command/subjects.ts';
import { storedTasks } from './stored-tasks.ts';

/** Characters printed before and after a difference. */
const CONTEXT_CHARS = 40;
/** Characters of a difference that are printed. */
const SHOWN_CHARS_MAX = 400;

export const diff = command({
  name: 'diff',
  subject: pair('A B', 'two task ids or task files'),
  summary: 'compares two tasks: states, calls, messages and artifacts; shows their times and token counts',
  details:
    'reads ids from NATS (NATS_URL, default: the local cluster of `npm start`); for tasks of a server, export them first. Exit code 1 when they ' +
    'differ; ids, times and chunks are not compared',
  asksNoServer: true,
  options: {},
  async run({ subject }, context) {
    const { output, json } = context;
    const { diffTasks } = await import('@hopline/replay');
    const [first, second] = [await readOne(subject[0], context), await readOne(subject[1], context)];
    const { same, differences, a, b } = diffTasks(first, second);
    if (json)
      output.line(JSON.stringify({ a: { taskId: first.taskId, ...a }, b: { taskId: second.taskId, ...b }, same, differences }));
    else {
      output.line(`A ${first.taskId}: ${measureOf(a)}`);
      output.line(`B ${second.taskId}: ${measureOf(b)}`);
      for (const difference of differences) printDifference(output, difference);
      output.line(same ? 'same' : `${differences.length} ${differences.length === 1 ? 'part differs' : 'parts differ'}`);
    }
    return same ? EXIT.ok : EXIT.failed;
  },
});

async function readOne(subject: string, { environment, signal }: CommandContext): Promise<StoredTask> {
  const one = { subjects: [subject], all: false, since: undefined, sample: undefined };
  for await (const { task, name } of storedTasks('diff', { ...one, environment, signal })) {
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

/** Prints where two texts differ: the two sides in their colors where standard output has colors. */
export function printDifference(output: Output, difference: TaskDifference, indent = ''): void {
  const [heading = '', ...sides] = differenceLines(difference);
  if (sides.length > 0) output.line(indent + heading);
  else output.compared(indent + heading, difference.a === undefined ? 'second' : 'first');
  for (const [index, line] of sides.entries()) output.compared(indent + line, index === 0 ? 'first' : 'second');
}

/** Lines that show where two texts differ, with some of the text around the difference. */
function differenceLines({ name, a, b }: TaskDifference): string[] {
  if (a === undefined || b === undefined) return [`${name}: only in ${a === undefined ? 'B' : 'A'}: ${quoted(a ?? b ?? '')}`];
  const { start, aEnd, bEnd } = differingSpan(a, b);
  const from = cutIndex(a, Math.max(0, start - CONTEXT_CHARS));
  const part = (text: string, end: number) => quoted(text.slice(from, cutIndex(text, end + CONTEXT_CHARS)));
  const character = codePoints(a.slice(0, start)) + 1;
  return [`${name}: differs from character ${character}`, `  A ${part(a, aEnd)}`, `  B ${part(b, bEnd)}`];
}

/** Quotes the text on one line. */
function quoted(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text);
}

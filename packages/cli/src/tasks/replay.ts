import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StreamItem } from '@hopline/client';
import { type Cursor, formatCursor, isTaskId, isVisible, type VisibleFact } from '@hopline/events';
import { readTaskFile, type TaskEntry, TaskFileError } from '@hopline/task-file';
import { noticePrinter } from '@hopline/terminal';
import { ANSWER, OUT } from '../ask/answer-options.ts';
import { outFolder } from '../ask/out-folder.ts';
import { showStream } from '../ask/show-stream.ts';
import { StreamOutcome } from '../ask/stream-outcome.ts';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT, EXIT_CODES_NOTE } from '../command/exit-code.ts';
import { bytesOfFile } from '../command/input-file.ts';
import { cursor, parsed } from '../command/options.ts';
import { one } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { PACE } from './pace.ts';

export const replay = command({
  name: 'replay',
  subject: one('TASK|FILE', 'one task id or one task file', 'files'),
  summary: 'prints the stream of a task as it happened, from the server or from a file',
  details: 'nothing runs again. An unfinished file is printed as far as it goes',
  options: {
    pace: PACE,
    from: parsed('C', 'starts after this cursor', cursor),
    to: parsed('C', 'ends with this cursor', cursor),
    out: OUT,
    answer: ANSWER,
  },
  notes: EXIT_CODES_NOTE,
  async run({ subject, options }, context) {
    const { pace = 1, from, to, out, answer } = options;
    const folder = outFolder(out);
    const events = eventsOf(entriesOf(context, subject), subject);
    let first: RecordedEvent | undefined;
    const items = paced(events, { pace, from, to }, context.signal, event => {
      first ??= event;
    });
    // With `from`, the printer assumes that the earlier part of the task was printed before.
    const printer = { resumed: from !== undefined, folder, answerNames: answer };
    const outcome = new StreamOutcome();
    const code = await showStream(context, { items, outcome, isRecorded: true, ...printer });
    if (first === undefined && code === EXIT.ok) context.output.warn('(no events between these cursors)');
    const isOpen = outcome.state === 'TASK_STATE_SUBMITTED' || outcome.state === 'TASK_STATE_WORKING';
    if (isOpen && to === undefined && !context.signal.aborted)
      context.output.warn('(the task had not ended: its events end here)');
    return code;
  },
});

type Part = { pace: number; from: Cursor | undefined; to: Cursor | undefined };

/** An event with its cursor and its time. */
type RecordedEvent = { cursor: Cursor; at: number; fact: VisibleFact };

function entriesOf(context: CommandContext, subject: string): AsyncIterable<TaskEntry> {
  if (existsSync(subject)) return readTaskFile(bytesOfFile(subject), { allowTruncated: true });
  if (!isTaskId(subject)) throw new UsageError(`there is no file ${subject}, and this is not a task id`);
  return exportedEntries(context, subject);
}

/** The facts of a task as its server exports them. */
function exportedEntries({ client, signal, output }: CommandContext, taskId: string): AsyncIterable<TaskEntry> {
  return readTaskFile(client.export(taskId, { records: 'facts', signal, onNotice: noticePrinter(output) }));
}

/** Throws UsageError for a file that cannot be read, or that contains more than this task. */
async function* eventsOf(entries: AsyncIterable<TaskEntry>, subject: string): AsyncGenerator<RecordedEvent, void> {
  let tasks = 0;
  try {
    for await (const entry of entries) {
      if (entry.kind === 'header') tasks += 1;
      if (tasks > 1) throw new UsageError(`${subject} contains several tasks, but only one can be replayed: split the file`);
      if (entry.kind === 'header' && !entry.header.contains.includes('facts'))
        throw new UsageError(`${subject} contains only inputs, but a replay needs facts: export it again`);
      if (entry.kind !== 'facts') continue;
      for (const fact of entry.record.facts) {
        if (isVisible(fact)) yield { cursor: { generation: fact.generation, seq: entry.seq }, at: fact.at, fact };
      }
    }
    if (tasks === 0) throw new UsageError(`${subject} has no task: the file is empty, or was cut within its first line`);
  } catch (thrown) {
    if (!(thrown instanceof TaskFileError)) throw thrown;
    throw new UsageError(`${subject}: ${thrown.message}`);
  }
}

async function* paced(
  events: AsyncIterable<RecordedEvent>,
  { pace, from, to }: Part,
  signal: AbortSignal,
  onEvent: (event: RecordedEvent) => void,
): AsyncGenerator<StreamItem, void> {
  let startedAt: number | undefined;
  let startMs = 0;
  for await (const recorded of events) {
    const { cursor, at, fact } = recorded;
    if (from !== undefined && cursor.generation <= from.generation) continue;
    if (to !== undefined && cursor.generation > to.generation) return;
    if (startedAt === undefined) {
      startedAt = at;
      startMs = performance.now();
    }
    // Measured from the start, not from the previous event, so that the time spent printing does not add up.
    const waitMs = startMs + (at - startedAt) / pace - performance.now();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal });
    onEvent(recorded);
    yield { cursor: formatCursor(cursor), event: fact.event };
  }
}

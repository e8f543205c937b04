import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, StreamItem } from '@hopline/client';
import { type Cursor, formatCursor, isTaskId, isVisible, type VisibleFact } from '@hopline/events';
import { readTaskFile, type TaskEntry, TaskFileError } from '@hopline/task-file';
import { type ArtifactFolder, noticePrinter } from '@hopline/terminal';
import type { CommandContext } from './command.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { bytesOfFile } from './input-file.ts';
import { showStream } from './show-stream.ts';
import { StreamOutcome } from './stream-outcome.ts';
import { UsageError } from './usage-error.ts';

export type ReplayOptions = {
  /** Factor of the recorded speed; infinite: without waiting. */
  pace: number;
  from: Cursor | undefined;
  to: Cursor | undefined;
  folder: ArtifactFolder | undefined;
  answer: readonly string[];
};

/** `hopline replay`: prints the facts of a task as a client received them. Nothing runs again. */
export async function replay(context: CommandContext, subject: string, options: ReplayOptions): Promise<ExitCode> {
  const events = eventsOf(entriesOf(context, subject), subject);
  let first: RecordedEvent | undefined;
  const items = paced(events, options, context.signal, event => {
    first ??= event;
  });
  const outcome = new StreamOutcome();
  const { from, folder, answer } = options;
  // A part of the task was printed before, as far as the printer knows.
  const code = await showStream(context, {
    items,
    outcome,
    isRecorded: true,
    resumed: from !== undefined,
    folder,
    answerNames: answer,
  });
  if (first === undefined && code === EXIT.ok) context.output.warn('(no event is within these cursors)');
  return code;
}

/** An event with its cursor and the time at which it happened. */
type RecordedEvent = { cursor: Cursor; at: number; fact: VisibleFact };

function entriesOf(context: CommandContext, subject: string): AsyncIterable<TaskEntry> {
  if (existsSync(subject)) return readTaskFile(bytesOfFile(subject), { allowTruncated: true });
  if (!isTaskId(subject)) throw new UsageError(`there is no file ${subject}, and it is no task id`);
  return exportedEntries(context.client, context, subject);
}

/** The facts of a task as its server exports them. */
function exportedEntries(client: Client, { signal, output }: CommandContext, taskId: string): AsyncIterable<TaskEntry> {
  return readTaskFile(client.export(taskId, { records: 'facts', signal, onNotice: noticePrinter(output) }));
}

/** Throws UsageError for a file that cannot be read, or that holds another task as well. */
async function* eventsOf(entries: AsyncIterable<TaskEntry>, subject: string): AsyncGenerator<RecordedEvent, void> {
  let tasks = 0;
  try {
    for await (const entry of entries) {
      if (entry.kind === 'header') tasks += 1;
      if (tasks > 1) throw new UsageError(`${subject} has several tasks, and one can be replayed: split the file`);
      if (entry.kind === 'header' && !entry.header.contains.includes('facts'))
        throw new UsageError(`${subject} has inputs only, and a replay needs facts: export it again`);
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
  { pace, from, to }: ReplayOptions,
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
    // From the start, not from the event before: the time that printing takes does not add up.
    const waitMs = startMs + (at - startedAt) / pace - performance.now();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal });
    onEvent(recorded);
    yield { cursor: formatCursor(cursor), event: fact.event };
  }
}

import type { StreamResponse, Task } from '@hopline/a2a';
import { formatCursor, isVisible } from '@hopline/events';
import { TaskViewBuilder } from '@hopline/task';
import { TaskFileError } from '@hopline/task-file/format';
import { readTaskFile } from '@hopline/task-file/read-task-file';
import { type RecordedTask, recordedTasks } from '@hopline/task-file/recorded-tasks';

/** Largest file that the page opens. It is limited, because the page keeps the records, the events and the text of each task. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** A task of a file: its records, its events as a client receives them, and the task as it was exported. */
export type FileTask = RecordedTask & {
  events: { cursor: string; event: StreamResponse }[];
  task: Task;
};

/** The file cannot be shown. The message is one sentence for its reader. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile';
}

/** The tasks of a task file (packages/task-file), all of them checked. Throws UnreadableFile. */
export async function readTasks(bytes: AsyncIterable<Uint8Array>, bytesMax = FILE_BYTES_MAX): Promise<FileTask[]> {
  const tasks = new Map<string, FileTask>();
  try {
    for await (const recorded of recordedTasks(readTaskFile(limited(bytes, bytesMax)))) {
      const { taskId } = recorded.header;
      if (tasks.has(taskId)) throw new UnreadableFile(`the file has task ${taskId} twice`);
      tasks.set(taskId, taskOf(recorded));
    }
  } catch (thrown) {
    throw thrown instanceof TaskFileError ? new UnreadableFile(thrown.message) : thrown;
  }
  return [...tasks.values()];
}

async function* limited(chunks: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array, void> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > bytesMax)
      throw new UnreadableFile(
        `the file has more than ${bytesMax / 1024 / 1024} MiB; open it with hopline serve or hopline replay`,
      );
    yield chunk;
  }
}

function taskOf({ header, facts, inputs }: RecordedTask): FileTask {
  const { taskId, contains, partial = [] } = header;
  if (!contains.includes('facts') || facts.length === 0)
    throw new UnreadableFile(`the file has no facts of task ${taskId}; export it without --inputs`);
  if (partial.includes('facts'))
    throw new UnreadableFile(`the beginning of task ${taskId} had expired when it was exported, so it cannot be shown`);
  const view = new TaskViewBuilder();
  const events: FileTask['events'] = [];
  for (const { seq, record } of facts) {
    view.add(record);
    for (const fact of record.facts) {
      if (!isVisible(fact)) continue;
      events.push({ cursor: formatCursor({ generation: fact.generation, seq }), event: fact.event });
    }
  }
  return { header, facts, inputs, events, task: view.view!.task };
}

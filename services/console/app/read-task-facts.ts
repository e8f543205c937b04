import type { TaskDiff } from '@hopline/replay/diff-tasks';
import { diffTasks } from '@hopline/replay/diff-tasks';

/** Stored records of a task, as an export has them. */
export type TaskFacts = Parameters<typeof diffTasks>[0]['facts'];

/** Limit for one export, because the page holds two of them. */
const EXPORT_BYTES_MAX = 64 * 1024 * 1024;

export const compareTasks = (a: TaskFacts, b: TaskFacts): TaskDiff => diffTasks({ facts: a }, { facts: b });

/**
 * The facts in the export of a task (packages/task-file). Its sums are not checked, because it comes from ingress and not from a file. Throws
 * an Error with one sentence.
 */
export async function readTaskFacts(body: ReadableStream<Uint8Array>, bytesMax = EXPORT_BYTES_MAX): Promise<TaskFacts> {
  const facts: TaskFacts = [];
  const decoder = new TextDecoder();
  let [rest, bytes, isComplete] = ['', 0, false];
  const reader = body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    bytes += next.value.length;
    if (bytes > bytesMax) {
      reader.cancel().catch(() => {});
      throw new Error(`the task has more than ${bytesMax / 1024 / 1024} MiB; compare it with hopline diff`);
    }
    const lines = (rest + decoder.decode(next.value, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const entry = JSON.parse(line) as { format?: string; version?: number; kind?: string };
      if (entry.format !== undefined && entry.version !== 1)
        throw new Error(`ingress exports version ${entry.version} of the format; this console reads version 1`);
      if (entry.kind === 'facts') facts.push(entry as unknown as TaskFacts[number]);
      isComplete ||= entry.kind === 'end';
    }
  }
  if (!isComplete) throw new Error('the export of the task ended early; retry');
  return facts;
}

import { createMemoryLog } from '@hopline/log/memory';
import { StoredScenario } from '@hopline/task/test-kit';
import { readTaskFile, writeTask } from '@hopline/task-file';
import { exportTask } from '@hopline/task-transfer';
import { type Recording, readRecordings } from './recording.ts';

/** Milliseconds between two commands of a recorded task. */
export const GAP_MS = 10;

/** Records a task for tests, as its relay stores it, exports it and reads it back. `clock` may be set forward between two commands. */
export async function record(
  taskId: string,
  build: (task: StoredScenario, clock: { at: number }) => Promise<void>,
): Promise<Recording[]> {
  const log = createMemoryLog({ shards: 1, recordBytesMax: 8 * 1024 * 1024 });
  const clock = { at: 1_700_000_000_000 };
  const task = new StoredScenario(log.facts, taskId, () => (clock.at += GAP_MS));
  await build(task, clock);
  const { header, outcome, records } = (await exportTask(log, taskId, { hopline: '0.1.0', contains: ['facts'], now: clock.at }))!;
  async function* bytes() {
    for await (const line of writeTask(header, records(), { outcome })) yield Buffer.from(line);
  }
  return readRecordings(readTaskFile(bytes()));
}

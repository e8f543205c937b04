import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { isTaskId } from '@hopline/events';
import { UsageError } from '../command/usage-error.ts';

/** Task ids of one command. */
const TASK_IDS_MAX = 10_000;

/** Reads one task id per line; ignores empty lines and lines that begin with #. Throws UsageError. */
export async function taskIdsIn(stream: Readable, name: string): Promise<string[]> {
  const ids: string[] = [];
  let number = 0;
  try {
    for await (const line of createInterface({ input: stream })) {
      number += 1;
      const text = line.trim();
      if (text === '' || text.startsWith('#')) continue;
      if (!isTaskId(text)) throw new UsageError(`${name}, line ${number}: not a task id`);
      if (ids.push(text) > TASK_IDS_MAX) throw new UsageError(`${name} has more than ${TASK_IDS_MAX} task ids`);
    }
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    throw new UsageError(`${name} cannot be read: ${(thrown as Error).message}`);
  }
  if (ids.length === 0) throw new UsageError(`${name} has no task id`);
  return ids;
}

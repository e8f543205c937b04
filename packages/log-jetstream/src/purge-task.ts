import { logSubject, type Role, rawTaskFilter, taskWorkFilters } from '@hopline/events';
import { type ErasedRecords, requireTaskId } from '@hopline/log';
import type { Connection } from './connection.ts';
import { retry } from './retry.ts';
import { ANY_AGENT } from './users.ts';

/**
 * Removes all records of a task. The streams deny the removal of single messages, but allow the removal of a subject. If an answer is lost,
 * the repetition counts fewer records than were removed.
 */
export async function purgeTask(connection: Connection, taskId: string): Promise<ErasedRecords> {
  requireTaskId(taskId);
  const { jsm, names, layouts } = connection;
  const purge = async (stream: string, subject: string): Promise<number> => {
    const options = { filter: names.subject(subject) };
    return (await retry(connection, stream, () => jsm.streams.purge(stream, options))).purged;
  };
  let work = 0;
  for (const role of ['supervisor', ANY_AGENT] as Role[])
    for (const filter of taskWorkFilters(role, taskId)) work += await purge(names.workStream, filter);
  const shard = layouts.shardOf(taskId);
  // Removed before the facts: a relay that reads an input of a task without facts would begin the task again.
  const inputs = await purge(names.inputsStreamOf(shard), rawTaskFilter(taskId, layouts));
  const facts = await purge(names.factsStreamOf(shard), logSubject(taskId, layouts));
  return { work, inputs, facts };
}

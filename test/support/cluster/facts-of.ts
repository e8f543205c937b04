import type { Fact } from '@hopline/events';
import { type Log, readTask } from '@hopline/log';

/** All facts that the log has of a task, in their order. */
export async function factsOf(log: Log, taskId: string): Promise<Fact[]> {
  const newest = await log.facts.last(taskId);
  const facts: Fact[] = [];
  for await (const { record } of readTask(log.facts, newest!)) facts.push(...record.facts);
  return facts;
}

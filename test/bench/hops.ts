import { openJetStreamLog } from '@hopline/log-jetstream';
import { reportTask } from '@hopline/task-audit';
import type { AnswerReport } from './client/answer.ts';
import { epochOffsetMs } from './measure/clock.ts';
import { STREAMED } from './tokens.ts';

/** Rows that add up to the first text, to the end of a task, and their sums. */
export const FIRST_TEXT_SUM = 'question to first text';

/**
 * Collects the milliseconds that tasks spend in each hop, as a list for each hop: first the hops that the log's records contain, then those
 * after the log. The rows before FIRST_TEXT_SUM add up to it.
 */
export async function hopsOf(servers: string, reports: readonly AnswerReport[]): Promise<Map<string, number[]>> {
  const log = await openJetStreamLog({ servers, name: 'bench-reader' });
  const found = new Map<string, number[]>();
  const add = (hop: string, ms: number) => void (found.get(hop)?.push(ms) ?? found.set(hop, [ms]));
  const offsetMs = epochOffsetMs();
  try {
    for (const { taskId, askedAtMs, firstTextAtMs, endedAtMs } of reports) {
      const report = (await reportTask(log, taskId))!;
      const { startedAt, hops: turnHops, events } = report;
      const sinceStart = (monotonic: number) => monotonic + offsetMs - startedAt;
      const text = events.find(({ name, chunk }) => name === STREAMED && chunk !== undefined)!;
      const last = events.at(-1)!;
      add('the question to the ingress', -sinceStart(askedAtMs));
      for (const { hop, ms } of turnHops) add(hop, ms);
      const { publishMs, heldMs, waitMs, appendMs = 0 } = text.chunk!;
      for (const [hop, ms] of Object.entries({ publish: publishMs, hold: heldMs, wait_for_append: waitMs, append: appendMs }))
        add(hop, ms);
      add('splice, socket, client: of the first text', sinceStart(firstTextAtMs) - text.storedMs!);
      add(FIRST_TEXT_SUM, firstTextAtMs - askedAtMs);
      add('first text stored to the end stored', last.storedMs! - text.storedMs!);
      add('splice, socket, client: of the end', sinceStart(endedAtMs) - last.storedMs!);
      add('question to end', endedAtMs - askedAtMs);
    }
  } finally {
    await log.close();
  }
  return found;
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export const HOPS_NOTE = 'hops as docs/reference/hops.md defines them, of the records, in whole milliseconds: read the means';

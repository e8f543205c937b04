import { isInterrupted, isTerminal } from '@hopline/a2a';
import { entryOf, type Fact } from '@hopline/events';
import { fromStart, type Job, type Log, startSeqOf } from '@hopline/log';
import type { Agent } from './agent.ts';

/**
 * The runs that an attempt must cancel when it fails or is no longer needed: all except one that the next turn continues. The next turn may
 * have begun already if the question of another attempt was accepted, and an A2A agent then works on the answer in the same task (campaign,
 * mixed seed 810). Rejects if the log cannot be read.
 */
export async function runsToCancel(
  log: Pick<Log, 'facts'>,
  agent: Pick<Agent, 'continuesRun'>,
  { work }: Pick<Job, 'work'>,
  runs: readonly unknown[],
): Promise<readonly unknown[]> {
  if (agent.continuesRun === undefined || runs.length === 0) return runs;
  const newest = await log.facts.last(work.taskId);
  const aggregate = newest?.record.aggregate;
  if (newest === undefined || aggregate === undefined || isTerminal(aggregate.state)) return runs;
  const { turn, state, calls } = aggregate;
  // The supervisor passes the question of a call on, so the task waits a little later than the call.
  const asked = work.call === undefined ? state : (entryOf(calls, work.call.id)?.state ?? state);
  if (turn === work.turn && !isInterrupted(asked)) return runs;
  let resume: unknown;
  for await (const { record } of fromStart(log.facts.read(work.taskId, startSeqOf(newest))))
    for (const fact of record.facts) {
      if (fact.kind === 'message.received' && fact.turn > work.turn) return runs.filter(run => !agent.continuesRun!(run, resume));
      resume = resumeIn(fact, work.call?.id) ?? resume;
    }
  return runs.filter(run => !agent.continuesRun!(run, resume));
}

/** The `resume` of a question: of the call, or of the agent that was addressed directly. */
function resumeIn(fact: Fact, call: string | undefined): unknown {
  if (fact.kind === 'call.ended') return fact.call === call ? fact.resume : undefined;
  return fact.kind === 'status.changed' && call === undefined && fact.call === undefined ? fact.resume : undefined;
}

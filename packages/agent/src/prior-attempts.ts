import type { Fact } from '@hopline/events';
import { type Log, readTask, type StoredFacts } from '@hopline/log';

/** A tool call that an earlier attempt began and did not end. */
type OpenTool = { lane: string; tool: string; callId: string };

/** What earlier attempts of the same work left in the task. */
export type PriorAttempts = {
  /** Lanes that are closed: their artifacts are complete and stand (S4-19). */
  closedLanes: ReadonlySet<string>;
  /** Lanes that a client has seen and that are still open. */
  openLanes: ReadonlySet<string>;
  openTools: readonly OpenTool[];
};

export const NO_PRIOR_ATTEMPTS: PriorAttempts = { closedLanes: new Set(), openLanes: new Set(), openTools: [] };

/** Reads the task's facts once; only a later attempt needs it. */
export async function readPriorAttempts(log: Log, newest: StoredFacts, producer: string): Promise<PriorAttempts> {
  const closedLanes = new Set<string>();
  const openLanes = new Set<string>();
  const openTools = new Map<string, OpenTool>();
  for await (const { record } of readTask(log.facts, newest)) {
    for (const fact of record.facts) {
      if (fact.kind !== 'artifact.updated' || fact.producer !== producer) continue;
      if (fact.event.artifactUpdate.lastChunk === true) closedLanes.add(fact.lane);
      else openLanes.add(fact.lane);
      noteTool(fact, openTools);
    }
  }
  return { closedLanes, openLanes, openTools: [...openTools.values()] };
}

function noteTool({ lane, event }: Extract<Fact, { kind: 'artifact.updated' }>, openTools: Map<string, OpenTool>): void {
  const { tool, toolCallId } = event.artifactUpdate.artifact.metadata ?? {};
  if (typeof tool !== 'string' || typeof toolCallId !== 'string') return;
  const started = /^(.*)\/start$/.exec(lane)?.[1];
  if (started !== undefined) openTools.set(started, { lane: started, tool, callId: toolCallId });
  else openTools.delete(lane.replace(/\/end$/, ''));
}

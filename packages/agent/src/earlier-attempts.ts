import type { Fact } from '@hopline/events';
import { type Log, readTask, type StoredFacts } from '@hopline/log';

/** A tool call that an earlier attempt began and never ended. */
type OrphanTool = { lane: string; tool: string; callId: string };

/** What earlier attempts of the same work left in front of the client. */
export type Earlier = {
  /** Lanes that are closed: what they show is complete and stands (S4-19). */
  closed: ReadonlySet<string>;
  /** Lanes that a client has seen and that are still open. */
  shown: ReadonlySet<string>;
  orphans: readonly OrphanTool[];
};

export const NOTHING_EARLIER: Earlier = { closed: new Set(), shown: new Set(), orphans: [] };

/** Reads the task's facts once. Only a second attempt needs it. */
export async function readEarlier(log: Log, newest: StoredFacts, producer: string): Promise<Earlier> {
  const closed = new Set<string>();
  const shown = new Set<string>();
  const orphans = new Map<string, OrphanTool>();
  for await (const { record } of readTask(log.facts, newest)) {
    for (const fact of record.facts)
      if (fact.kind === 'artifact.updated' && fact.producer === producer) note(fact, { closed, shown, orphans });
  }
  return { closed, shown, orphans: [...orphans.values()] };
}

type Seen = { closed: Set<string>; shown: Set<string>; orphans: Map<string, OrphanTool> };

function note(fact: Extract<Fact, { kind: 'artifact.updated' }>, { closed, shown, orphans }: Seen): void {
  const { lastChunk, artifact } = fact.event.artifactUpdate;
  if (lastChunk === true) closed.add(fact.lane);
  else shown.add(fact.lane);
  const { tool, toolCallId } = artifact.metadata ?? {};
  if (typeof tool !== 'string' || typeof toolCallId !== 'string') return;
  const lane = /^(.*)\/start$/.exec(fact.lane)?.[1];
  if (lane !== undefined) orphans.set(lane, { lane, tool, callId: toolCallId });
  else orphans.delete(fact.lane.replace(/\/end$/, ''));
}

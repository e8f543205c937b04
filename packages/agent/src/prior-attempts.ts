import { type Metadata, textOf } from '@hopline/a2a';
import type { Fact, Work } from '@hopline/events';
import { type Log, readTask, type StoredFacts } from '@hopline/log';
import { progressLane } from '@hopline/profiles';
import { ROOT_AGENT } from '@hopline/task';
import { RemoteRunsOfTurn } from './remote-runs-of-turn.ts';

type TurnWork = Pick<Work, 'call' | 'turn'>;

/** A tool call that an earlier attempt began but did not end. */
type OpenTool = { lane: string; tool: string; callId: string };

/** State that earlier attempts at the same work have left in the task. */
export type PriorAttempts = {
  /** Closed lanes, whose artifacts are complete and remain (S4-19). */
  closedLanes: ReadonlySet<string>;
  /** Lanes that clients have seen and that are still open. */
  openLanes: ReadonlySet<string>;
  openTools: readonly OpenTool[];
  /** Text of the answer that clients have seen from those attempts. */
  shownText: string;
  /** Runs that those attempts began on a server and that, according to the log, have not ended. */
  remoteRuns: readonly unknown[];
  /** When the newest fact of those attempts was created, in epoch milliseconds; undefined if they have written none. */
  lastAt: number | undefined;
};

export const NO_PRIOR_ATTEMPTS: PriorAttempts = {
  closedLanes: new Set(),
  openLanes: new Set(),
  openTools: [],
  shownText: '',
  remoteRuns: [],
  lastAt: undefined,
};

/** Reads the task's facts once, because only a later attempt needs them. */
export async function readPriorAttempts(log: Log, newest: StoredFacts, { call, turn }: TurnWork): Promise<PriorAttempts> {
  const producer = call?.id ?? ROOT_AGENT;
  const closedLanes = new Set<string>();
  const openLanes = new Set<string>();
  const openTools = new Map<string, OpenTool>();
  const shownTexts = new Map<string, string>();
  const remoteRuns = new RemoteRunsOfTurn(producer, turn);
  let lastAt: number | undefined;
  for await (const { record } of readTask(log.facts, newest)) {
    for (const fact of record.facts) {
      remoteRuns.add(fact);
      if (fact.kind === 'message.received') {
        shownTexts.clear();
        lastAt = undefined;
      }
      if ('producer' in fact && fact.producer === producer) lastAt = fact.at;
      if (fact.kind === 'status.changed' && (fact.call ?? ROOT_AGENT) === producer) noteToolStatus(fact, openTools);
      if (fact.kind !== 'artifact.updated' || fact.producer !== producer) continue;
      if (fact.event.artifactUpdate.lastChunk === true) closedLanes.add(fact.lane);
      else openLanes.add(fact.lane);
      noteTool(fact.lane, fact.event.artifactUpdate.artifact.metadata, openTools);
      noteText(fact, shownTexts);
    }
  }
  const shownText = [...shownTexts.values()].join('');
  return { closedLanes, openLanes, openTools: [...openTools.values()], shownText, remoteRuns: remoteRuns.open, lastAt };
}

/** The text of a closed lane remains; a later attempt does not write it again. */
function noteText({ lane, chunk, event }: Extract<Fact, { kind: 'artifact.updated' }>, texts: Map<string, string>): void {
  const { artifact, append = false, lastChunk = false } = event.artifactUpdate;
  if (lastChunk) texts.delete(lane);
  else if (chunk !== undefined) texts.set(lane, (append ? (texts.get(lane) ?? '') : '') + textOf(artifact.parts));
}

/** A profile may show notices as statuses. The id of their message names the lane. */
function noteToolStatus({ event }: Extract<Fact, { kind: 'status.changed' }>, openTools: Map<string, OpenTool>): void {
  const { taskId, status } = event.statusUpdate;
  const { messageId, metadata } = status.message ?? {};
  const lane = messageId === undefined ? undefined : progressLane(messageId, taskId);
  if (lane !== undefined) noteTool(lane, metadata, openTools);
}

function noteTool(lane: string, metadata: Metadata | undefined, openTools: Map<string, OpenTool>): void {
  const { tool, toolCallId } = metadata ?? {};
  if (typeof tool !== 'string' || typeof toolCallId !== 'string') return;
  const started = /^(.*)\/start$/.exec(lane)?.[1];
  if (started !== undefined) openTools.set(started, { lane: started, tool, callId: toolCallId });
  else openTools.delete(lane.replace(/\/end$/, ''));
}

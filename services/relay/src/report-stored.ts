import { isInterrupted, isTerminal, stateWord } from '@hopline/a2a';
import { FLUSH_REASONS, type FlushReason } from '@hopline/coalesce';
import { type ArtifactUpdated, isVisible, type TaskAggregate, type TraceCarrier } from '@hopline/events';
import { producerAgent } from '@hopline/task';
import { type HopMetrics, inTrace, type Logger, taskLogger } from '@hopline/telemetry';
import type { StoredChange } from './pipeline-context.ts';
import { beginsTurn } from './task-appender.ts';

type ReportOptions = {
  /** Trace context of the turn. */
  trace: TraceCarrier;
  /** Epoch milliseconds at which the server received the newest message. */
  receivedAt: number | undefined;
  /**
   * Set for the first record of a task that another relay began: the time since which no relay had folded the task, in epoch milliseconds.
   */
  unfoldedSince: number | undefined;
};

/**
 * Counts the facts of a stored record, measures the hops of their chunks, and logs one line for each change of the task's state; text is
 * not logged. It counts facts rather than decisions, so that the figures agree with the log.
 */
export function reportStored(
  step: StoredChange,
  { metrics, logger }: { metrics: HopMetrics; logger: Logger },
  { trace, receivedAt, unfoldedSince }: ReportOptions,
): void {
  const { facts, aggregate, party } = step;
  const isTakeover = unfoldedSince !== undefined;
  if (isTakeover) metrics.hopDuration.recordMs(aggregate.at - unfoldedSince, { hop: 'takeover' }, trace);
  let isOnlyText = true;
  for (const fact of facts) {
    if (isVisible(fact)) metrics.events.add(1, { kind: EVENT_KINDS[fact.kind] });
    if (fact.kind === 'artifact.updated') {
      measureChunk(fact, aggregate, metrics, trace);
      continue;
    }
    isOnlyText = false;
    if (fact.kind === 'task.created') metrics.tasksCreated.add(1);
    if (beginsTurn(fact)) {
      if (party !== undefined) metrics.tenantTurns.add(1, party);
      if (receivedAt !== undefined) metrics.hopDuration.recordMs(Date.now() - receivedAt, { hop: 'accept' }, trace);
    }
    const state = fact.kind === 'status.changed' ? fact.event.statusUpdate.status.state : undefined;
    if (state !== undefined && isTerminal(state)) metrics.tasksEnded.add(1, { state: stateWord(state) as EndedState });
  }
  // Most records change no state, so they need neither a logger nor a context.
  if (isTakeover || !isOnlyText) inTrace(trace, () => logLines(logger, step, isTakeover));
}

type EndedState = 'completed' | 'failed' | 'canceled' | 'rejected';

const EVENT_KINDS = { 'task.created': 'task', 'status.changed': 'status', 'artifact.updated': 'artifact' } as const;

/** `publish`, `hold` and `wait_for_append` add up to the time from the oldest token to the start of the append. */
function measureChunk(
  { at, producer, chunk }: ArtifactUpdated,
  aggregate: TaskAggregate,
  metrics: HopMetrics,
  trace: TraceCarrier,
): void {
  if (chunk === undefined) return;
  const agent = producerAgent(aggregate, producer);
  const { heldMs, waitMs = 0 } = chunk;
  metrics.tokens.add(chunk.count, { agent });
  metrics.chunks.add(1, { agent, reason: flushReasonOf(chunk.reason) });
  metrics.hopDuration.recordMs(at - waitMs - heldMs - chunk.firstAt, { hop: 'publish', agent }, trace);
  metrics.hopDuration.recordMs(heldMs, { hop: 'hold', agent }, trace);
  metrics.hopDuration.recordMs(waitMs, { hop: 'wait_for_append', agent }, trace);
}

/** A chunk of another version may have a reason that this version does not know. */
function flushReasonOf(reason: string): FlushReason | 'other' {
  return FLUSH_REASONS.find(known => known === reason) ?? 'other';
}

function logLines(logger: Logger, { facts, aggregate }: StoredChange, isTakeover: boolean): void {
  const log = taskLogger(logger, aggregate.taskId, aggregate.owner);
  const { contextId, turn, role, profile, generation } = aggregate;
  if (isTakeover) log.info({ turn, generation }, 'task taken over');
  for (const fact of facts) {
    if (fact.kind === 'task.created') log.info({ context_id: contextId, role, profile }, 'task created');
    if (fact.kind === 'message.received') log.info({ turn: fact.turn }, 'task continued');
    if (fact.kind === 'call.ended') log.info({ call_id: fact.call, state: stateWord(fact.state) }, 'call ended');
    if (fact.kind !== 'status.changed') continue;
    const { state } = fact.event.statusUpdate.status;
    const isEnd = isTerminal(state);
    if (isEnd || isInterrupted(state))
      log.info({ turn, state: stateWord(state), generation }, isEnd ? 'task ended' : 'task waits');
  }
}

import { isTerminal, stateWord } from '@hopline/a2a';
import { type ArtifactUpdated, isVisible, type TaskAggregate, type TraceCarrier } from '@hopline/events';
import { producerAgent } from '@hopline/task';
import type { HopMetrics } from '@hopline/telemetry';
import type { StoredStep } from './pipeline-context.ts';
import { beginsTurn } from './task-appender.ts';

/**
 * Counts stored facts and measures the hops of their chunks. Counts facts instead of decisions, so that the figures agree with the log. `trace`: that
 * of the turn.
 */
export function measureFacts(
  { facts, aggregate, receivedAt, party }: StoredStep,
  metrics: HopMetrics,
  { nowMs, trace }: { nowMs: number; trace: TraceCarrier },
): void {
  for (const fact of facts) {
    if (isVisible(fact)) metrics.events.add(1, { kind: EVENT_KINDS[fact.kind] });
    if (fact.kind === 'artifact.updated') measureChunk(fact, aggregate, metrics, trace);
    if (fact.kind === 'task.created') metrics.tasksCreated.add(1);
    if (beginsTurn(fact)) {
      if (party !== undefined) metrics.tenantTurns.add(1, party);
      if (receivedAt !== undefined) metrics.hopDuration.recordMs(nowMs - receivedAt, { hop: 'accept' }, trace);
    }
    const state = fact.kind === 'status.changed' ? fact.event.statusUpdate.status.state : undefined;
    if (state !== undefined && isTerminal(state)) metrics.tasksEnded.add(1, { state: stateWord(state) as EndedState });
  }
}

type EndedState = 'completed' | 'failed' | 'canceled' | 'rejected';

const EVENT_KINDS = { 'task.created': 'task', 'status.changed': 'status', 'artifact.updated': 'artifact' } as const;

/** The three times add up to the time from the oldest token to the beginning of the append. */
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
  metrics.chunks.add(1, { agent, reason: chunk.reason as FlushLabel });
  metrics.hopDuration.recordMs(at - waitMs - heldMs - chunk.firstAt, { hop: 'publish', agent }, trace);
  metrics.hopDuration.recordMs(heldMs, { hop: 'hold', agent }, trace);
  metrics.hopDuration.recordMs(waitMs, { hop: 'wait_for_append', agent }, trace);
}

/** Facts keep the coalescer's reason as text. */
type FlushLabel = 'each' | 'first' | 'ready' | 'quiet' | 'delay' | 'age' | 'size' | 'boundary' | 'close';

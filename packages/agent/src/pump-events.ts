import { setImmediate as nextLoopTurn } from 'node:timers/promises';
import type { InputWriter } from '@hopline/log';
import { ATTR, errorWord, type Hop, LINE, type Logger } from '@hopline/telemetry';
import { AbortableEvents } from './abortable-events.ts';
import type { Agent, AgentEvent, EndEvent, Turn } from './agent.ts';
import { AgentLost } from './attempt-failed.ts';
import { BoundExceeded, EVENTS_AT_ONCE_MAX } from './limits.ts';
import { COMPLETED, endOf, failedEnd, failureOf, placeOf, type TurnEnd } from './turn-end.ts';
import type { TurnInputs } from './turn-inputs.ts';
import type { TurnMetrics } from './turn-metrics.ts';

export type PumpDeps = {
  agent: Agent;
  /** Configured name of the agent. */
  name: string;
  /** Receives the class of an error that an agent throws, never its message, which may hold content. */
  logger: Logger;
  /**
   * Receives the errors that an agent throws, for its author's terminal. They may hold content, so without this member they are dropped.
   */
  showError?: ((error: unknown) => void) | undefined;
};

type Pump = {
  inputs: TurnInputs;
  writer: InputWriter;
  hop: Hop;
  metrics: TurnMetrics;
  /** Called when the agent has begun to wait for credentials. */
  onWait: () => void;
};

/** Writes the agent's events as inputs and returns how the turn ended. Rejects when the writer has failed, and with AgentLost. */
export async function pumpEvents(deps: PumpDeps, turn: Turn, { inputs, writer, hop, metrics, onWait }: Pump): Promise<TurnEnd> {
  inputs.begin();
  const { agent } = deps;
  // Called within the iterator, because an agent may throw before it returns an iterable.
  const start = (): AsyncIterable<AgentEvent | readonly AgentEvent[]> => agent.runBatches?.(turn) ?? agent.run(turn);
  const events = new AbortableEvents(start, turn.signal);
  let atOnce = 0;
  let hasAnswered = false;
  const completed = (end: TurnEnd): TurnEnd => {
    if (end.state === 'TASK_STATE_COMPLETED' && !hasAnswered && end.message === undefined) onEmptyAnswer(deps);
    return end;
  };
  try {
    for (;;) {
      let next: IteratorResult<AgentEvent | readonly AgentEvent[], undefined>;
      try {
        next = await events.next();
      } catch (error) {
        if (turn.signal.aborted) return COMPLETED;
        if (error instanceof AgentLost) throw error;
        return onThrow(deps, error);
      }
      if (next.done === true) return completed(COMPLETED);
      const batch = isBatch(next.value) ? next.value : [next.value];
      for (const event of batch) {
        if (isEnd(event)) return completed(endOf(event));
        hasAnswered ||= isAnswer(event);
        if (event.type === 'step') hop.step({ [ATTR.graphNode]: event.step });
        metrics.count(event);
        inputs.take(event);
        if (event.type === 'auth-required') onWait();
        if (writer.isReady) continue;
        await writer.ready();
        if (turn.signal.aborted) return COMPLETED;
      }
      atOnce += batch.length;
      if (atOnce < EVENTS_AT_ONCE_MAX) continue;
      atOnce = 0;
      await nextLoopTurn();
    }
  } catch (error) {
    if (error instanceof AgentLost) throw error;
    return await toInvalidEventFailure(deps, error, writer);
  } finally {
    await events.return();
  }
}

function isBatch(value: AgentEvent | readonly AgentEvent[]): value is readonly AgentEvent[] {
  return Array.isArray(value);
}

/** Reason of a turn that failed because of an event that does not fit into the log. */
export const UNREADABLE_EVENT = 'the agent sent an event that cannot be read';

/** Whether an event ends its turn. */
export function isEnd(event: AgentEvent): event is EndEvent {
  return event.type === 'done' || event.type === 'failed' || event.type === 'interrupted';
}

function isAnswer(event: AgentEvent): boolean {
  return event.type === 'artifact' || ((event.type === 'text' || event.type === 'snapshot') && event.text !== '');
}

/**
 * The task is completed all the same, because A2A requires no artifact, and an agent may do its work elsewhere. Its author, who may have
 * forgotten a `yield`, sees the reason for the empty answer.
 */
function onEmptyAnswer({ logger, name, showError }: PumpDeps): void {
  showError?.('a turn completed without text, artifact or message, so its answer is empty');
  logger.info({ agent: name }, LINE.answerEmpty);
}

function onThrow({ logger, name, showError }: PumpDeps, error: unknown): TurnEnd {
  showError?.(error);
  const reason = error instanceof Error ? error.name : typeof error;
  logger.warn({ agent: name, reason, path: placeOf(error) }, LINE.agentThrew);
  return { ...failureOf(error), cause: errorWord(error) };
}

/**
 * Turns the error of an event that cannot be written into a failure of the turn, because the next attempt would get the same event. Rejects
 * if the writer itself has failed.
 */
export async function toInvalidEventFailure({ showError }: PumpDeps, error: unknown, writer: InputWriter): Promise<TurnEnd> {
  await writer.ready();
  showError?.(error);
  return failedEnd(error instanceof BoundExceeded ? error.message : UNREADABLE_EVENT, false, 'unreadable_event');
}

import { setImmediate as nextLoopTurn } from 'node:timers/promises';
import type { InputWriter } from '@hopline/log';
import { ATTR, errorWord, type Hop, LINE, type Logger } from '@hopline/telemetry';
import type { Agent, AgentEvent, EndEvent, Turn } from './agent.ts';
import { AgentLost } from './attempt-failed.ts';
import { BoundExceeded, EVENTS_AT_ONCE_MAX, STOP_MS_MAX } from './limits.ts';
import { DONE, endOf, failed, failureOf, placeOf, type TurnEnd } from './turn-end.ts';
import type { TurnInputs } from './turn-inputs.ts';
import type { TurnMetrics } from './turn-metrics.ts';

export type PumpDeps = {
  agent: Agent;
  /** Configured name of the agent. */
  name: string;
  /** Receives the class of an error that an agent throws, never its message, which may hold content. */
  logger: Logger;
  /** Receives errors that an agent throws, for its author's terminal, because they may hold content. Absent: they are dropped. */
  showError?: ((error: unknown) => void) | undefined;
};

type Pump = { inputs: TurnInputs; writer: InputWriter; hop: Hop; metrics: TurnMetrics };

/** Writes the agent's events as inputs and returns how the turn ended. Rejects when the writer has failed, and with AgentLost. */
export async function pumpEvents(deps: PumpDeps, turn: Turn, { inputs, writer, hop, metrics }: Pump): Promise<TurnEnd> {
  inputs.begin();
  const { agent } = deps;
  // Called by the iterator, because an agent may throw before it returns an iterable.
  const start = (): AsyncIterable<AgentEvent | readonly AgentEvent[]> => agent.runBatches?.(turn) ?? agent.run(turn);
  const events = new AbortableEvents(start, turn.signal);
  let atOnce = 0;
  try {
    for (;;) {
      let next: IteratorResult<AgentEvent | readonly AgentEvent[], undefined>;
      try {
        next = await events.next();
      } catch (error) {
        if (turn.signal.aborted) return DONE;
        if (error instanceof AgentLost) throw error;
        return onThrow(deps, error);
      }
      if (next.done === true) return DONE;
      const batch = isBatch(next.value) ? next.value : [next.value];
      for (const event of batch) {
        if (isEnd(event)) return endOf(event);
        if (event.type === 'step') hop.step({ [ATTR.graphNode]: event.step });
        metrics.count(event);
        inputs.take(event);
        if (writer.isReady) continue;
        await writer.ready();
        if (turn.signal.aborted) return DONE;
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

function onThrow({ logger, name, showError }: PumpDeps, error: unknown): TurnEnd {
  showError?.(error);
  const reason = error instanceof Error ? error.name : typeof error;
  logger.warn({ agent: name, reason, path: placeOf(error) }, LINE.agentThrew);
  return { ...failureOf(error), cause: errorWord(error) };
}

/**
 * Turns the error of an event that cannot be written into a failure of the turn: the next attempt would get the same event. Rejects when
 * the writer itself has failed.
 */
export async function toInvalidEventFailure({ showError }: PumpDeps, error: unknown, writer: InputWriter): Promise<TurnEnd> {
  await writer.ready();
  showError?.(error);
  return failed(error instanceof BoundExceeded ? error.message : UNREADABLE_EVENT, false, 'unreadable_event');
}

/**
 * The events of an agent until `signal` aborts. When it aborts, the iteration ends at once, even if the agent ignores the signal, and the
 * agent gets STOP_MS_MAX to clean up. One listener serves the whole turn: a `Promise.race` per event would keep one reaction per token
 * until the end.
 */
export class AbortableEvents<T> implements AsyncIterableIterator<T, undefined> {
  readonly #start: () => AsyncIterable<T>;
  readonly #signal: AbortSignal;
  #iterator: AsyncIterator<T> | undefined;
  #endStep = () => {};
  readonly #onAbort = () => {
    this.#isAborted = true;
    this.#endStep();
  };
  /** Kept because `aborted` of a combined signal walks over all of its sources. */
  #isAborted: boolean;
  #isOver = false;

  /** `start` is called with the first `next`, and never if the signal has aborted before. */
  constructor(start: () => AsyncIterable<T>, signal: AbortSignal) {
    this.#start = start;
    this.#signal = signal;
    this.#isAborted = signal.aborted;
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Rejects with what the agent throws. Its own promise is the only one for a step: each `await` more would cost as much as writing a token. */
  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#isAborted || this.#isOver) return this.return();
    return new Promise((resolve, reject) => {
      const thrown = (error: unknown) => void this.return().then(() => reject(error));
      // First, because the agent may run until the signal aborts.
      this.#endStep = () => resolve(this.return());
      try {
        this.#iterator ??= this.#start()[Symbol.asyncIterator]();
        this.#iterator.next().then(step => {
          // An abort between two steps leaves the end to the next one, which waits for the agent to clean up.
          this.#endStep = () => {};
          resolve(step.done === true ? this.return() : step);
        }, thrown);
      } catch (error) {
        thrown(error);
      }
    });
  }

  /** Ends the iteration, and waits up to STOP_MS_MAX for the agent to clean up. Never rejects. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#signal.removeEventListener('abort', this.#onAbort);
      await withinStopTime(this.#iterator?.return?.());
    }
    return { done: true, value: undefined };
  }

  /** The events can be iterated once. */
  [Symbol.asyncIterator](): this {
    return this;
  }
}

async function withinStopTime(stopping: Promise<unknown> | undefined): Promise<void> {
  if (stopping === undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, STOP_MS_MAX);
  // An error while the agent cleans up does not change the result of the turn.
  await Promise.race([stopping.catch(() => {}), promise]);
  clearTimeout(timer);
}

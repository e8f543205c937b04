import { type Chunk, createCoalescer, offer, tick, wakeAtMs } from '@hopline/coalesce';
import type { Rule } from './rules.ts';

/** Result of a rule on one lane: its events with the summed delay of their tokens, and the added delay of each token, in order. */
export type Outcome = { events: { atMs: number; delayMs: number }[]; delaysMs: number[] };

export function costOf(outcome: Outcome, eventCostMs: number): number {
  return outcome.events.reduce((sum, { delayMs }) => sum + eventCostMs + delayMs, 0);
}

function record(outcome: Outcome, arrivals: readonly number[], atMs: number): void {
  const delays = arrivals.map(at => atMs - at);
  outcome.delaysMs.push(...delays);
  outcome.events.push({ atMs, delayMs: delays.reduce((sum, delay) => sum + delay, 0) });
}

/**
 * Runs the coalescer over one lane in simulated time. Timers fire exactly on time (`timerMs` 0), or at the next multiple of `timerMs`, like
 * real ones. The stream has no final event, so the last chunk is sent by a timer.
 */
export function simulateCoalescer(times: readonly number[], eventCostMs: number, holdMsMax: number, timerMs = 0): Outcome {
  const coalescer = createCoalescer({ eventCostMs, holdMsMax });
  const outcome: Outcome = { events: [], delaysMs: [] };
  const sent = (chunks: Chunk[], nowMs: number) => {
    for (const { count } of chunks) {
      const first = outcome.delaysMs.length;
      record(outcome, times.slice(first, first + count), nowMs);
    }
  };
  const wakeBefore = (untilMs: number) => {
    for (let wakeMs = wakeAtMs(coalescer); wakeMs !== undefined; wakeMs = wakeAtMs(coalescer)) {
      const firesMs = timerMs === 0 ? wakeMs : Math.ceil(wakeMs / timerMs) * timerMs;
      if (firesMs >= untilMs) return;
      sent(tick(coalescer, firesMs), firesMs);
    }
  };
  for (let index = 0; index < times.length; ) {
    const nowMs = times[index]!;
    wakeBefore(nowMs);
    for (; times[index] === nowMs; index++) sent(offer(coalescer, 'lane', { text: 'x', atMs: nowMs }, nowMs), nowMs);
    sent(tick(coalescer, nowMs), nowMs);
  }
  wakeBefore(Number.POSITIVE_INFINITY);
  return outcome;
}

/** Runs the rule of another product over one lane in simulated time. */
export function simulateRule(times: readonly number[], rule: Rule): Outcome {
  const outcome: Outcome = { events: [], delaysMs: [] };
  let held: number[] = [];
  let dueMs = Number.POSITIVE_INFINITY;
  let sentMs = Number.NEGATIVE_INFINITY;
  const send = (nowMs: number) => {
    record(outcome, held, nowMs);
    held = [];
    sentMs = nowMs;
    dueMs = Number.POSITIVE_INFINITY;
  };
  for (const nowMs of times) {
    if (!rule.timerless && dueMs < nowMs) send(dueMs);
    held.push(nowMs);
    const delayMs = held.reduce((sum, at) => sum + nowMs - at, 0);
    dueMs = rule.dueMs({ tokens: held.length, firstMs: held[0]!, nowMs, delayMs, sentMs });
    if (dueMs <= nowMs) send(nowMs);
  }
  // Without a timer the rest is sent at the end of the stream.
  if (held.length > 0) send(rule.timerless ? times.at(-1)! : dueMs);
  return outcome;
}

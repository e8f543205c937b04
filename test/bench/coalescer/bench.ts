import { DEFAULT_SETTINGS, offlineOptimum } from '@hopline/coalesce';
import { bestOnlineCost } from './best-online.ts';
import { CLOCKS, type Clock, hasStructure } from './clocks.ts';
import { seeded } from './random.ts';
import { rules } from './rules.ts';
import { costOf, type Outcome, simulateCoalescer, simulateRule } from './simulate.ts';
import { recordedStreams, type Stream, shapedStreams } from './streams.ts';

export const EVENT_COSTS_MS = [10, 20, 40, 80, 110, 160, 400];
/** Runs of each stream under each clock, with different seeds. The rule was tuned on other seeds and shapes. */
const REPEATS = 3;
const SEED = 20_251_121;
export const OURS = 'hopline';
/** The rule with timers that fire on whole milliseconds only, as Node's do. */
export const OURS_COARSE = 'hopline, timers of 1 ms';

/** Target for clocks with structure, against the offline optimum. No deterministic rule can stay below 2 on every sequence. */
export const STRUCTURE_RATIO_MAX = 1.25;
/**
 * Target for clocks without structure, against the best online rule that knows their distribution. The offline optimum would be unfair,
 * because it foresees arrivals that no rule can.
 */
export const BEST_ONLINE_RATIO_MAX = 1.05;

export type CoalescerRow = {
  clock: string;
  eventCostMs: number;
  rule: string;
  eventsPer1000: number;
  meanAddedMs: number;
  p99AddedMs: number;
  /**
   * Cost of all streams over the offline optimum of all streams. The optimum may hold a token indefinitely; our rules hold one for at most
   * holdMsMax.
   */
  costRatio: number;
  /** The same ratio for the worst single lane of `WORST_TOKENS_MIN` tokens or more. */
  worstLaneRatio: number;
  /** For clocks without structure: the cost divided by that of the best online rule, which knows the distribution. */
  bestOnlineRatio?: number;
};

/** A lane of a few tokens is only one decision, so its ratio is meaningless. */
const WORST_TOKENS_MIN = 100;

/** `streams`: a description of the measured streams. */
export type CoalescerBench = { streams: string; rows: CoalescerRow[] };

type Lane = { times: number[]; optimum: number };

/** All rows, and a description of the streams. Deterministic: simulated time, seeded clocks. */
export function benchCoalescer(): CoalescerBench {
  const recorded = recordedStreams();
  const streams = recorded.length > 0 ? recorded : shapedStreams();
  const what =
    recorded.length > 0 ? `${recorded.length} recorded provider streams` : 'synthetic shapes only (../shared/traces is absent)';
  const rows: CoalescerRow[] = [];
  for (const [clock, arrivals] of Object.entries(CLOCKS)) {
    const laneTimes = lanesOf(streams, arrivals);
    for (const eventCostMs of EVENT_COSTS_MS) {
      const lanes = laneTimes.map(times => ({ times, optimum: offlineOptimum(times, eventCostMs).cost }));
      const best = hasStructure(clock) ? undefined : bestOnlineCost(laneTimes, eventCostMs, DEFAULT_SETTINGS.holdMsMax);
      const row = (rule: string, run: (times: number[]) => Outcome) => {
        const { cost, ...measured } = measure(lanes, eventCostMs, run);
        rows.push({ clock, eventCostMs, rule, ...measured, ...(best !== undefined && { bestOnlineRatio: cost / best }) });
      };
      row(OURS, times => simulateCoalescer(times, eventCostMs, DEFAULT_SETTINGS.holdMsMax));
      row(OURS_COARSE, times => simulateCoalescer(times, eventCostMs, DEFAULT_SETTINGS.holdMsMax, 1));
      for (const rule of rules(eventCostMs)) row(rule.name, times => simulateRule(times, rule));
    }
  }
  return { streams: what, rows };
}

/** Arrival times of each lane of each stream, `REPEATS` times. */
function lanesOf(streams: readonly Stream[], arrivals: Clock): number[][] {
  const lanes: number[][] = [];
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    for (const [index, stream] of streams.entries()) {
      const times = arrivals(stream.lanes.length, seeded(SEED + 1000 * repeat + index));
      for (const name of new Set(stream.lanes)) lanes.push(times.filter((_, at) => stream.lanes[at] === name));
    }
  }
  return lanes;
}

type Measured = Omit<CoalescerRow, 'clock' | 'eventCostMs' | 'rule' | 'bestOnlineRatio'> & { cost: number };

function measure(lanes: readonly Lane[], eventCostMs: number, run: (times: number[]) => Outcome): Measured {
  const delays: number[] = [];
  let events = 0;
  let cost = 0;
  let optimum = 0;
  let worst = 0;
  for (const lane of lanes) {
    const outcome = run(lane.times);
    const laneCost = costOf(outcome, eventCostMs);
    for (const delay of outcome.delaysMs) delays.push(delay);
    events += outcome.events.length;
    cost += laneCost;
    optimum += lane.optimum;
    if (lane.times.length >= WORST_TOKENS_MIN) worst = Math.max(worst, laneCost / lane.optimum);
  }
  const sorted = Float64Array.from(delays).sort();
  return {
    eventsPer1000: (1000 * events) / delays.length,
    meanAddedMs: sorted.reduce((sum, delay) => sum + delay, 0) / sorted.length,
    p99AddedMs: sorted[Math.floor(0.99 * (sorted.length - 1))] ?? 0,
    cost,
    costRatio: cost / optimum,
    worstLaneRatio: worst,
  };
}

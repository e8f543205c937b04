import { type Latency, latencyOf } from '../../bench/measure/spread.ts';
import type { TimedViewer } from './client.ts';

/** The times of one fault, by `performance.now()`. */
export type FaultTimes = { startedAt: number; endedAt: number };

/** A stream without text for longer than this before the fault was not streaming. */
const ACTIVE_MS = 500;
/** A pause that begins later than this after the end of the fault has another cause. */
const AFTERMATH_MS = 1_500;

export type FlowTimes = {
  /** Every stream that was in mid-text when a fault began: its longest pause during the fault, in milliseconds. */
  streams: Latency | undefined;
  /** The longest pause of each fault, in milliseconds. */
  slowest: Latency | undefined;
  /** How long the faults lasted in milliseconds, until all stopped processes were ready again. */
  lasted: Latency | undefined;
};

/** How long text paused at viewers that stay connected or resume at once. A pause counts from the fault, or from the last text after it. */
export function flowTimesOf(faults: readonly FaultTimes[], viewers: readonly TimedViewer[]): FlowTimes {
  const steady = viewers.filter(({ isSteady }) => isSteady);
  const pauses = faults.map(fault =>
    steady.map(({ progressAt }) => longestPause(progressAt, fault)).filter(pause => pause !== undefined),
  );
  const slowest = pauses.filter(ofFault => ofFault.length > 0).map(ofFault => Math.max(...ofFault));
  return {
    streams: latency(pauses.flat()),
    slowest: latency(slowest),
    lasted: latency(faults.map(({ startedAt, endedAt }) => endedAt - startedAt)),
  };
}

/** Undefined when the stream was not in mid-text. */
export function longestPause(progressAt: readonly number[], { startedAt, endedAt }: FaultTimes): number | undefined {
  const isActive = progressAt.some(at => at <= startedAt && at > startedAt - ACTIVE_MS);
  if (!isActive || progressAt.at(-1)! <= startedAt) return undefined;
  let longest = 0;
  for (const [index, at] of progressAt.entries()) {
    const before = progressAt[index - 1];
    if (at <= startedAt || before === undefined || before > endedAt + AFTERMATH_MS) continue;
    longest = Math.max(longest, at - Math.max(before, startedAt));
  }
  return longest;
}

const latency = (values: readonly number[]) => (values.length === 0 ? undefined : latencyOf(Float64Array.from(values)));

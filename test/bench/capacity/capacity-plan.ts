import type { Size } from '../question.ts';

/**
 * `streams`: numbers of streams of the runs to which the lines are fitted, near full load of two cores. `heldOut`: number of streams of the
 * run by which the lines are judged. `tasks`: tasks of one token, with and without a webhook. `viewers`: clients of running tasks of their
 * own. `stored`: numbers of tasks in two logs.
 */
export type CapacityPlan = {
  streams: number[];
  heldOut: number;
  seconds: number;
  tasks: number;
  viewers: number;
  stored: [few: number, many: number];
};

export const CAPACITY_PLANS: Record<Size, CapacityPlan> = {
  full: { streams: [100, 200, 400], heldOut: 300, seconds: 12, tasks: 400, viewers: 400, stored: [1_000, 20_000] },
  quick: { streams: [50, 100, 200], heldOut: 150, seconds: 8, tasks: 200, viewers: 200, stored: [1_000, 10_000] },
  tiny: { streams: [2, 3], heldOut: 4, seconds: 1, tasks: 4, viewers: 4, stored: [1_000, 2_000] },
};

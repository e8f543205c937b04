import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { isTest, ROOT } from './source-files.ts';

/**
 * Starts when this file is imported, because V8 counts blocks only in functions that are compiled afterwards: import what is measured
 * later. It replaces any coverage that the process already collects, so a separate test file must use it.
 */
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/** Number of steps before the first measurement, so that every module is loaded and every connection is open. */
const WARM_UP_STEPS = 5;
/** Number of intervals with one step each, and of intervals without a step. */
const INTERVALS = 15;
/** Number of intervals in which a block of the step may be missing, because on a busy machine its end may fall into the next interval. */
const MISSING_MAX = 1;
/** How long an interval continues after its step, in milliseconds, because acknowledgements and checkpoints follow. */
const SETTLE_MS = 40;

/**
 * The production files that execute for one step: at least one of their blocks runs in the intervals that contain exactly one step, and in
 * less than half of the intervals of the same length in which nothing happens. This excludes timers, heartbeats and leases.
 */
export async function filesExecutedBy(step: () => Promise<void>): Promise<string[]> {
  for (let index = 0; index < WARM_UP_STEPS; index += 1) await step();
  await delay(SETTLE_MS);
  const busy = new Map<string, number>();
  const idle = new Map<string, number>();
  await blocksSinceLastCall();
  for (let index = 0; index < INTERVALS; index += 1) {
    const begunMs = performance.now();
    await step();
    await delay(SETTLE_MS);
    count(busy, await blocksSinceLastCall());
    await delay(performance.now() - begunMs);
    count(idle, await blocksSinceLastCall());
  }
  const isOfStep = (block: string) => busy.get(block)! >= INTERVALS - MISSING_MAX && (idle.get(block) ?? 0) < INTERVALS / 2;
  const ofStep = [...busy.keys()].filter(isOfStep);
  assert.ok(ofStep.length > 0, 'no file of the project is in the coverage');
  return [...new Set(ofStep.map(block => block.slice(0, block.indexOf(':'))))].sort();
}

function count(intervals: Map<string, number>, blocks: Iterable<string>): void {
  for (const block of blocks) intervals.set(block, (intervals.get(block) ?? 0) + 1);
}

/** The blocks of production files that have run, as `file:start-end`. */
async function blocksSinceLastCall(): Promise<Set<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const root = pathToFileURL(ROOT).href;
  const blocks = new Set<string>();
  for (const { url, functions } of result) {
    const file = url.slice(root.length);
    if (!url.startsWith(root) || file.startsWith('node_modules/') || isTest(file)) continue;
    for (const { startOffset, endOffset, count } of functions.flatMap(({ ranges }) => ranges))
      if (count > 0) blocks.add(`${file}:${startOffset}-${endOffset}`);
  }
  return blocks;
}

import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { getHeapStatistics } from 'node:v8';

/**
 * Starts when this file is imported, because V8 counts blocks only in functions that are compiled afterwards; a function that ran earlier
 * counts as a single block. It replaces any coverage that the process already collects, so a separate test file must use it.
 */
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/**
 * Counts operations instead of time, so that the result is the same on any machine: V8's precise coverage counts how often each block of
 * the sources in `folder` runs, tests excluded.
 */
export async function blocksRun(folder: URL, work: () => unknown): Promise<number> {
  await session.post('Profiler.takePreciseCoverage');
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const scripts = result.filter(({ url }) => url.startsWith(folder.href) && !/\.test(-[a-z]+)?\.ts$/.test(url));
  assert.ok(scripts.length > 0, `no source of ${folder.pathname} is in the coverage`);
  return scripts.flatMap(script => script.functions.flatMap(({ ranges }) => ranges)).reduce((sum, { count }) => sum + count, 0);
}

/**
 * The bytes that `work` allocates on the heap, exact to a few MiB. They include native copies, e.g. of a string, which blocksRun does not
 * count.
 */
export async function bytesAllocated(work: () => unknown): Promise<number> {
  const before = getHeapStatistics().total_allocated_bytes;
  await work();
  return getHeapStatistics().total_allocated_bytes - before;
}

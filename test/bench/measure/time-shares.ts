import { Session } from 'node:inspector/promises';

/** Groups of code: the first pattern that matches a sample's `function@file` gives its group. */
export type Groups = Readonly<Record<string, RegExp>>;

const SAMPLE_US = 500;

/**
 * Runs `work` with the profiler of V8 and returns the share of its time in each group, by the function that ran; 0 to 1. Time in which the
 * process waited counts as `waiting`, and code that no pattern matches as `other`.
 */
export async function timeShares(groups: Groups, work: () => Promise<unknown>): Promise<Record<string, number>> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US });
    await session.post('Profiler.start');
    await work();
    const { profile } = await session.post('Profiler.stop');
    const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, `${callFrame.functionName}@${callFrame.url}`]));
    const shares: Record<string, number> = Object.fromEntries(
      [...Object.keys(groups), 'waiting', 'other'].map(name => [name, 0]),
    );
    let total = 0;
    for (const [index, id] of (profile.samples ?? []).entries()) {
      const frame = frames.get(id)!;
      // Leaves out the profiler itself.
      if (frame === 'post@node:inspector') continue;
      const name = frame === '(idle)@' ? 'waiting' : (Object.keys(groups).find(group => groups[group]!.test(frame)) ?? 'other');
      const us = profile.timeDeltas![index]!;
      shares[name]! += us;
      total += us;
    }
    return Object.fromEntries(Object.entries(shares).map(([name, us]) => [name, us / Math.max(1, total)]));
  } finally {
    session.disconnect();
  }
}

import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { ticksPerSecond } from './process-usage.ts';

/** Seconds of wall clock, of all busy CPUs, and of this process with its ended children. */
type Snapshot = { atS: number; busyS: number; ownS: number };

/** Fields of the first line of /proc/stat: user nice system idle iowait irq softirq steal. */
const IDLE = [3, 4];
const STEAL = 7;

export function readLoad(): Snapshot | undefined {
  try {
    const [, ...times] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]!.split(/\s+/);
    const busy = times.slice(0, STEAL + 1).reduce((sum, time, field) => (IDLE.includes(field) ? sum : sum + Number(time)), 0);
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ownTicks = fields.slice(11, 15).reduce((sum, time) => sum + Number(time), 0);
    const ticks = ticksPerSecond();
    return { atS: performance.now() / 1000, busyS: busy / ticks, ownS: ownTicks / ticks };
  } catch {
    return undefined;
  }
}

/** Share of the machine's CPU time since `before` used by other processes, 0 to 1. Running children count as others. Undefined without /proc. */
export function shareOfOthers(before: Snapshot | undefined, after = readLoad(), cores = cpus().length): number | undefined {
  if (before === undefined || after === undefined) return undefined;
  const others = after.busyS - before.busyS - (after.ownS - before.ownS);
  return Math.min(1, Math.max(0, others / ((after.atS - before.atS) * cores)));
}

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** User and system time of a process so far, in seconds; in steps of a tick (10 ms). Undefined without /proc (not Linux), or for an ended process. */
export function cpuSecondsOf(pid: number): number | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  // The program name may contain spaces and brackets, so fields are counted after the last bracket.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields === undefined ? undefined : (Number(fields[11]) + Number(fields[12])) / ticksPerSecond();
}

/** Resident memory, KiB. Undefined as above. */
export function residentKibOf(pid: number): number | undefined {
  const line = readProc(`/proc/${pid}/status`)?.match(/^VmRSS:\s+(\d+) kB$/m);
  return line ? Number(line[1]) : undefined;
}

export type Child = { pid: number; program: string };

/** Running child processes; empty without /proc. */
export function children(): Child[] {
  const found: Child[] = [];
  for (const entry of procEntries()) {
    const match = readProc(`/proc/${entry}/stat`)?.match(/\((.*)\) \S (\d+) /s);
    if (match && Number(match[2]) === process.pid) found.push({ pid: Number(entry), program: match[1]! });
  }
  return found;
}

function procEntries(): string[] {
  try {
    return readdirSync('/proc').filter(entry => /^\d+$/.test(entry));
  } catch {
    return [];
  }
}

let ticks = 0;
/** Unit of the times in /proc. */
export function ticksPerSecond(): number {
  ticks ||= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return ticks;
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

export type Pids = Record<string, number>;
export type CpuSeconds = Record<string, number>;

/** CPU seconds of each process during `work`; undefined without /proc. */
export async function withCpu<R>(pids: Pids, work: () => Promise<R>): Promise<{ result: R; cpu: CpuSeconds | undefined }> {
  const before = snapshot(pids);
  const result = await work();
  const after = snapshot(pids);
  if (before === undefined || after === undefined) return { result, cpu: undefined };
  return { result, cpu: Object.fromEntries(Object.keys(pids).map(name => [name, after[name]! - before[name]!])) };
}

function snapshot(pids: Pids): CpuSeconds | undefined {
  const used: CpuSeconds = {};
  for (const [name, pid] of Object.entries(pids)) {
    const seconds = cpuSecondsOf(pid);
    if (seconds === undefined) return undefined;
    used[name] = seconds;
  }
  return used;
}

export function totalOf(cpu: CpuSeconds): number {
  return Object.values(cpu).reduce((sum, seconds) => sum + seconds, 0);
}

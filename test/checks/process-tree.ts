import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Kills a process, then those that it started, and so on. Processes that have ended by themselves are left out. */
export function killProcessTree(pid: number): void {
  // Listed first, because the children of a process that has ended get another parent.
  for (const one of [pid, ...descendantsOf(pid)]) {
    try {
      process.kill(one, 'SIGKILL');
    } catch {
      // It has ended in the meantime.
    }
  }
}

function descendantsOf(pid: number): number[] {
  const childrenOf = Map.groupBy(processes(), ({ parent }) => parent);
  const found = [pid];
  // The list grows while it is read.
  for (const one of found) found.push(...(childrenOf.get(one) ?? []).map(child => child.pid));
  return found.slice(1);
}

function processes(): { pid: number; parent: number }[] {
  if (!existsSync('/proc/self/stat')) {
    const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
    return lines.map(line => line.trim().split(/\s+/).map(Number)).map(([pid = 0, parent = 0]) => ({ pid, parent }));
  }
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name));
  return pids.flatMap(pid => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The name of the program stands in parentheses and may have spaces. The state and the parent follow it.
      return [{ pid: Number(pid), parent: Number(stat.slice(stat.lastIndexOf(') ') + 2).split(' ')[1]) }];
    } catch {
      // It has ended in the meantime.
      return [];
    }
  });
}

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const PS_MS_MAX = 2000;

/** Whether a process with this id exists (a zombie counts). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * The command line of a running process, or "" when there is none: ids are reused, so an id from a file alone proves nothing.
 * /proc first: slim Linux images have no ps.
 */
export function commandLine(pid: number): string {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8', timeout: PS_MS_MAX }).trim();
  } catch {
    return '';
  }
}

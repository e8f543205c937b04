import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const PS_MS_MAX = 2000;

/** Whether a process with this id exists, also one that has ended and was not collected by its parent. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Whether its ports and files are free: it is gone, or a zombie (inside a container nobody may ever collect it). */
export function hasEnded(pid: number): boolean {
  return !isAlive(pid) || /^[ZX]/.test(processState(pid));
}

/**
 * The command line of a running process, or "" when there is none: ids are reused, so an id from a file alone proves nothing.
 * /proc first: slim Linux images have no ps.
 */
export function commandLine(pid: number): string {
  if (process.platform !== 'linux') return askPs(pid, 'args');
  return readProc(pid, 'cmdline').replaceAll('\0', ' ').trim();
}

function processState(pid: number): string {
  if (process.platform !== 'linux') return askPs(pid, 'stat');
  // The name before it stands in brackets and may hold brackets itself.
  const stat = readProc(pid, 'stat');
  return stat.slice(stat.lastIndexOf(')') + 2);
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

function askPs(pid: number, column: string): string {
  try {
    return execFileSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8', timeout: PS_MS_MAX }).trim();
  } catch {
    return '';
  }
}

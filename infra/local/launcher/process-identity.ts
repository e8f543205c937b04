import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isAlive } from '@hopline/local-cluster';

const PS_MS_MAX = 2000;

/** Whether the process no longer exists or is a zombie; a container without an init process never reaps zombies. */
export function hasEnded(pid: number): boolean {
  return !isAlive(pid) || /^[ZX]/.test(processState(pid));
}

/**
 * The command line of a running process, or "". Ids are reused, so an id from a file alone does not identify a process.
 * Linux reads /proc, because slim images have no ps.
 */
export function commandLine(pid: number): string {
  if (process.platform !== 'linux') return readPs(pid, 'args');
  return readProc(pid, 'cmdline').replaceAll('\0', ' ').trim();
}

/** When a process started, or "". Values are comparable only on one machine, until it reboots. */
export function startedAt(pid: number): string {
  return process.platform === 'linux' ? (statFields(pid)[START_FIELD] ?? '') : readPs(pid, 'lstart');
}

function processState(pid: number): string {
  return process.platform === 'linux' ? (statFields(pid)[0] ?? '') : readPs(pid, 'stat');
}

/** The 22nd field of /proc/PID/stat: clock ticks since the machine booted. */
const START_FIELD = 22 - 3;

/** The fields of /proc/PID/stat from the third one, which is the state. */
function statFields(pid: number): string[] {
  const stat = readProc(pid, 'stat');
  // The preceding process name is in brackets and can contain brackets.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

function readPs(pid: number, column: string): string {
  try {
    return execFileSync('ps', ['-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8', timeout: PS_MS_MAX }).trim();
  } catch {
    return '';
  }
}

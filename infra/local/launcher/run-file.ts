import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/** One process of the local cluster in `run.json`. */
export type RunningProcess = { service: string; instance: string; pid: number; url: string };

/** Replaces the file atomically: a concurrent reader finds the old list or the new one. */
export function writeRunFile(path: string, processes: RunningProcess[]): void {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify({ processes }, null, 2)}\n`);
  renameSync(draft, path);
}

/** The processes of an earlier start; empty when the file is missing or invalid. */
export function readRunFile(path: string): RunningProcess[] {
  try {
    const { processes } = JSON.parse(readFileSync(path, 'utf8'));
    return Array.isArray(processes) ? processes.filter(isRunningProcess) : [];
  } catch {
    return [];
  }
}

function isRunningProcess(value: unknown): value is RunningProcess {
  const { pid, service, instance } = (value ?? {}) as Partial<RunningProcess>;
  return Number.isInteger(pid) && (pid as number) > 1 && typeof service === 'string' && typeof instance === 'string';
}

export function removeRunFile(path: string): void {
  rmSync(path, { force: true });
}

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { ListedProcess, RunFile } from '@hopline/local-cluster';

export type RunningProcess = ListedProcess & { pid: number };

/** Only its owner may read the file. Replaces it atomically, so that a concurrent reader finds the old list or the new one. */
export function writeRunFile(path: string, content: RunFile): void {
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** The running processes of an earlier start; empty when the file is missing or invalid. */
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

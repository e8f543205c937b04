import { children } from './process-usage.ts';

/** Child processes end with this process, even on Ctrl-C and on an uncaught error. */
const pids = new Set<number>();

process.on('exit', () => {
  // Services that are still starting are listed only by the system.
  for (const pid of new Set([...pids, ...children().map(child => child.pid)])) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process has already ended.
    }
  }
});

/** Returns a function that removes the process after an orderly end, so that a later one with the same id is not killed. */
export function killAtExit(pid: number): () => void {
  pids.add(pid);
  return () => pids.delete(pid);
}

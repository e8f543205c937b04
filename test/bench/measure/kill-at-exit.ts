import { children } from './process-usage.ts';

/** Whatever ends this process ends what it has started: also Ctrl-C, and an error nobody caught. */
const pids = new Set<number>();

process.on('exit', () => {
  // Services that are still starting are known to nobody but the system.
  for (const pid of new Set([...pids, ...children().map(child => child.pid)])) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
});

/** Returns what to call when the process was ended in an orderly way, so that a later one with the same id is left alone. */
export function killAtExit(pid: number): () => void {
  pids.add(pid);
  return () => pids.delete(pid);
}

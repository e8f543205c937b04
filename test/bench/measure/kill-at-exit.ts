/** Whatever ends this process ends what it has started: also Ctrl-C, and an error nobody caught. */
const pids = new Set<number>();

process.on('exit', () => {
  for (const pid of pids) {
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

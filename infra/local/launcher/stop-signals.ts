/** A terminal's Ctrl-C arrives directly and through the parent process; signals within this time count as one. */
const SAME_PRESS_MS = 1000;

/** Calls `stop` for the first signal and `kill` for a later one. */
export function onStopSignals({ stop, kill }: { stop: (reason: string) => void; kill: () => void }): void {
  let firstAt: number | null = null;
  const request = (reason: string) => {
    if (firstAt === null) {
      firstAt = performance.now();
      stop(reason);
    } else if (performance.now() - firstAt > SAME_PRESS_MS) kill();
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => request(name));
  // After a fault of the launcher itself its processes must still be drained.
  process.on('uncaughtException', error => request(`internal error (${error.message})`));
  // The bootstrap at the other end of this channel was killed.
  if (process.connected) process.on('disconnect', () => request('the parent process ended'));
}

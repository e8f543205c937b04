/** A terminal's Ctrl-C reaches this process directly and again through its parent: within this time they are one. */
const SAME_PRESS_MS = 1000;

/** Calls `stop` at the first request to end, and `kill` when one comes again later. */
export function onStopSignals({ stop, kill }: { stop: (reason: string) => void; kill: () => void }): void {
  let firstAt: number | null = null;
  const request = (reason: string) => {
    if (firstAt === null) {
      firstAt = performance.now();
      stop(reason);
    } else if (performance.now() - firstAt > SAME_PRESS_MS) kill();
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => request(name));
  // A fault of the launcher itself must not leave its processes to their fate.
  process.on('uncaughtException', error => request(`internal error (${error.message})`));
  // The bootstrap holds the other end of this channel: it was killed.
  if (process.connected) process.on('disconnect', () => request('the parent process is gone'));
}

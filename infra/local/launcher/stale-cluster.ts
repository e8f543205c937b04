import { setTimeout as sleep } from 'node:timers/promises';
import type { Home } from './home.ts';
import { commandLine, hasEnded } from './process-identity.ts';
import { type RunningProcess, readRunFile, removeRunFile } from './run-file.ts';

const GRACE_MS = 8000;
const POLL_MS = 50;

/**
 * Ends what a launcher that was killed left on this home (it holds the home's lock no more): its nats-server holds the store, its ingress
 * the port. @returns the instances that were still there.
 */
export async function stopStaleCluster(home: Home): Promise<string[]> {
  const left = readRunFile(home.runFile).filter(process => isOurs(process, home));
  for (const { pid } of left) send(pid, 'SIGTERM');
  await Promise.all(left.map(process => ends(process.pid)));
  removeRunFile(home.runFile);
  return left.map(({ instance }) => instance);
}

/** Process ids are reused: the command line must be the one we would have started. */
function isOurs({ pid, service }: RunningProcess, home: Home): boolean {
  const command = commandLine(pid);
  return service === 'nats' ? command.includes(home.natsConfig) : command.includes(`/${service}/src/main.ts`);
}

async function ends(pid: number): Promise<void> {
  if (await isGoneWithin(pid, GRACE_MS)) return;
  send(pid, 'SIGKILL');
  await isGoneWithin(pid, GRACE_MS);
}

async function isGoneWithin(pid: number, msMax: number): Promise<boolean> {
  const deadline = performance.now() + msMax;
  while (!hasEnded(pid)) {
    if (performance.now() > deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended by itself.
  }
}

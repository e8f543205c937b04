import { setTimeout as sleep } from 'node:timers/promises';
import type { Home } from './home.ts';
import { commandLine, hasEnded } from './process-identity.ts';
import { type RunningProcess, readRunFile, removeRunFile } from './run-file.ts';

const GRACE_MS = 8000;
const POLL_MS = 50;

/**
 * Ends the processes that a killed launcher left on this home: its nats-server holds the store, its ingress the port.
 * @returns the instances that were still running.
 */
export async function stopStaleCluster(home: Home): Promise<string[]> {
  const stale = readRunFile(home.runFile).filter(process => belongsTo(process, home));
  for (const { pid } of stale) send(pid, 'SIGTERM');
  await Promise.all(stale.map(process => end(process.pid)));
  removeRunFile(home.runFile);
  return stale.map(({ instance }) => instance);
}

/** Process ids are reused, so the command line must match too. */
function belongsTo({ pid, service }: RunningProcess, home: Home): boolean {
  const command = commandLine(pid);
  return service === 'nats' ? command.includes(home.natsConfig) : command.includes(`/${service}/src/main.ts`);
}

async function end(pid: number): Promise<void> {
  if (await hasEndedWithin(pid, GRACE_MS)) return;
  send(pid, 'SIGKILL');
  await hasEndedWithin(pid, GRACE_MS);
}

async function hasEndedWithin(pid: number, msMax: number): Promise<boolean> {
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
    // The process has already ended.
  }
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

/** A server that is started by a command. It gets `env`, and inherits only HOME, LOGNAME, PATH, SHELL, TERM and USER. */
export type ServerCommand = {
  command: string;
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** Absent: the user of this process, whose variables the server can then read. */
  user?: { uid: number; gid: number };
};

/** A server that runs, and its standard streams. */
export type ServerProcess = {
  input: Writable;
  output: Readable;
  /** Resolves when the server has ended. */
  ended: Promise<void>;
  /** Resolves when the server has ended, at the latest after SIGKILL. */
  stop(): Promise<void>;
};

/** Time for a server to end by itself, and then after SIGTERM (MCP 2025-06-18, lifecycle, shutdown). */
export const STOP_MS = 2_000;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Starts a server as a child of this process. `inherited`: variables that it gets in addition to `env`. Rejects if the system cannot start
 * its program.
 */
export async function startServer(
  { command, args = [], env, cwd, user }: ServerCommand,
  inherited: Environment,
): Promise<ServerProcess> {
  const child = spawn(command, args, {
    env: { ...inherited, ...(user && { HOME: tmpdir(), LOGNAME: '', USER: '' }), ...env },
    // Standard error may contain content, so it is not logged.
    stdio: ['pipe', 'pipe', 'ignore'],
    ...(cwd !== undefined && { cwd }),
    ...user,
  });
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()));
  // Writing to a server that has ended is not an error of its own.
  child.stdin.on('error', () => {});
  await once(child, 'spawn');
  child.on('error', () => {});
  const stop = async () => {
    child.stdin.end();
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await Promise.race([ended, sleep(STOP_MS, undefined, { ref: false })]);
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    }
    await ended;
  };
  return { input: child.stdin, output: child.stdout, ended, stop };
}

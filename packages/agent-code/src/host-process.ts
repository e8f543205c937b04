import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { HostLink } from './code-session.ts';
import type { CodeUser } from './code-user.ts';

export type HostProcessOptions = {
  env: Readonly<Record<string, string | undefined>>;
  /** Absent: the user of this process. */
  user?: CodeUser | undefined;
  /** Options of Node. */
  nodeOptions: readonly string[];
  /** Destination of the lines that the code prints. */
  stdout: Writable;
  stderr: Writable;
};

export type HostProcess = Pick<HostLink, 'ended' | 'kill'> & { child: ChildProcess };

/** The program of a host. */
export const HOST = fileURLToPath(import.meta.resolve('@hopline/agent-code/host'));

/** Index of the channel among the streams of a host. */
const CHANNEL = 3;
/** Characters of a line that the code prints; a longer one is cut into several. */
const LINE_CHARS_MAX = 64 * 1024;

/** Starts a host as a child of the sub-agent. */
export function startHostProcess(options: HostProcessOptions): HostLink {
  const { child, ended, kill } = spawnHost(options, 'pipe');
  return { channel: child.stdio[CHANNEL] as Duplex, ended, kill };
}

/** Starts a host. It inherits nothing but `env` and its channel. Its standard streams are pipes of its own. */
export function spawnHost({ env, user, nodeOptions, stdout, stderr }: HostProcessOptions, channel: 'pipe' | Socket): HostProcess {
  const child = spawn(process.execPath, [...nodeOptions, HOST], {
    env,
    ...user,
    stdio: ['ignore', 'pipe', 'pipe', channel],
    // A process group of its own, because the terminal's Ctrl-C is for the sub-agent, and the group is killed as a whole.
    detached: true,
  });
  forwardLines(child.stdout as Readable, stdout);
  forwardLines(child.stderr as Readable, stderr);
  const ended = new Promise<string>(resolve => {
    child.once('error', error => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const kill = () => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The group has ended.
    }
  };
  return { child, ended, kill };
}

/** Passes on whole lines, so that they do not cut those of the sub-agent's log. */
function forwardLines(from: Readable, to: Writable): void {
  let open = '';
  from.setEncoding('utf8');
  from.on('data', (text: string) => {
    open += text;
    const end = open.length > LINE_CHARS_MAX ? open.length : open.lastIndexOf('\n') + 1;
    if (end === 0) return;
    to.write(open.endsWith('\n', end) ? open.slice(0, end) : `${open.slice(0, end)}\n`);
    open = open.slice(end);
  });
  from.on('end', () => {
    if (open !== '') to.write(`${open}\n`);
  });
  from.on('error', () => {});
}

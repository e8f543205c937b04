import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { RESPONSE_BYTES_MAX } from './limits.ts';

/** A server as a child process. It inherits only HOME, LOGNAME, PATH, SHELL, TERM and USER, and gets `env`. */
export type ServerCommand = {
  command: string;
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** Absent: the user of this process, whose variables the server can then read. */
  user?: { uid: number; gid: number };
};

/** Time for a server to end by itself, and then after SIGTERM (MCP 2025-06-18, lifecycle, shutdown). */
const STOP_MS = 2_000;

/** The stdio transport of MCP. That of the SDK cannot start a server as another user. */
export class ChildTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #server: ServerCommand;
  readonly #received = new ReadBuffer({ maxBufferSize: RESPONSE_BYTES_MAX });
  #child: ChildProcess | undefined;

  constructor(server: ServerCommand) {
    this.#server = server;
  }

  async start(): Promise<void> {
    const { command, args = [], env, cwd, user } = this.#server;
    const child = spawn(command, args, {
      env: { ...getDefaultEnvironment(), ...(user && { HOME: tmpdir(), LOGNAME: '', USER: '' }), ...env },
      // Standard error may contain content, so it is not logged.
      stdio: ['pipe', 'pipe', 'ignore'],
      ...(cwd !== undefined && { cwd }),
      ...user,
    });
    this.#child = child;
    child.on('close', () => {
      this.#child = undefined;
      this.onclose?.();
    });
    const onError = (error: Error) => this.onerror?.(error);
    child.stdin.on('error', onError);
    child.stdout.on('error', onError).on('data', (chunk: Buffer) => this.#receive(chunk));
    await once(child, 'spawn');
    child.on('error', onError);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (!stdin) throw new Error('Not connected');
    if (!stdin.write(serializeMessage(message))) await once(stdin, 'drain');
  }

  async close(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    this.#received.clear();
    if (child === undefined) return;
    const closed = new Promise<void>(resolve => child.once('close', () => resolve()));
    child.stdin?.end();
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await Promise.race([closed, sleep(STOP_MS, undefined, { ref: false })]);
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    }
  }

  #receive(chunk: Buffer): void {
    try {
      this.#received.append(chunk);
    } catch (error) {
      this.onerror?.(error as Error);
      void this.close();
      return;
    }
    for (;;) {
      try {
        const message = this.#received.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        this.onerror?.(error as Error);
      }
    }
  }
}

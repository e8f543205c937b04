import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { faultInLog, logSize, openLog } from './log-file.ts';

/** A process to run. `prepare` is called for every start, so that a port in use can be replaced. */
export type ProcessSpec = {
  service: string;
  instance: string;
  cwd: string;
  logPath: string;
  /** The process writes text that only the author of an agent may see to file descriptor 3. */
  writesForAuthor?: boolean;
  /** The launcher and the process exchange messages over an IPC channel. */
  exchangesMessages?: boolean;
  /** Set only for a sub-agent: its name and its target. */
  agent?: { name: string; target: string };
  prepare: () => Promise<{ command: string[]; env: NodeJS.ProcessEnv; url: string }>;
};

export type ProcessEvents = {
  /** A process has started or ended: `run.json` must be rewritten. */
  changed: () => void;
  /**
   * A process ended and restarts after `waitMs`; null: it is not restarted. Repeated exits at the longest delay are not reported.
   */
  restarting: (process: SupervisedProcess, ending: string, waitMs: number | null) => void;
  /** Text for the author of an agent, see `writesForAuthor`. */
  authorText?: (process: SupervisedProcess, text: string) => void;
  /** A process that `exchangesMessages` has started; `send` fails silently once it has ended. */
  connected?: (process: SupervisedProcess, send: (message: object) => void) => void;
  /** A message of such a process. */
  message?: (process: SupervisedProcess, message: unknown, send: (answer: object) => void) => void;
  /** The restart that `restarting` reported has happened. */
  restarted: (process: SupervisedProcess, pid: number) => void;
};

/** Exit code for invalid settings (EX_CONFIG of sysexits.h), because a restart would fail in the same way. */
const EXIT_CONFIG = 78;

/** File descriptor for the author of an agent. */
export const AUTHOR_FD = 3;

const RESTART_MS_MIN = 200;
const RESTART_MS_MAX = 5000;
/** A process that ran this long counts as healthy: the delay starts over. */
const HEALTHY_MS = 30_000;

/**
 * Delay before a restart, doubled from 0.2 s to 5 s.
 * @param previousMs the delay before the last start, 0 for the first
 * @param livedMs how long the process then ran
 */
export function restartDelay(previousMs: number, livedMs: number): number {
  if (previousMs === 0 || livedMs >= HEALTHY_MS) return RESTART_MS_MIN;
  return Math.min(previousMs * 2, RESTART_MS_MAX);
}

/** Restarts one process with growing delays whenever it ends, until `stop`. */
export class SupervisedProcess {
  readonly spec: ProcessSpec;
  readonly #events: ProcessEvents;
  #child: ChildProcess | null = null;
  #url = '';
  #timer: NodeJS.Timeout | undefined;
  #waitMs = 0;
  #stopping = false;
  #exits = 0;
  #starts = 0;
  #ending = '';
  #logStart = 0;
  #isFinal = false;
  #isReported = false;

  constructor(spec: ProcessSpec, events: ProcessEvents) {
    this.spec = spec;
    this.#events = events;
  }

  /** Process id, or null while it is not running. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** URL since its last start; "" before the first. */
  get url(): string {
    return this.#url;
  }

  /** Number of exits before `stop`. */
  get exits(): number {
    return this.#exits;
  }

  /** Starts after the first. */
  get restarts(): number {
    return Math.max(0, this.#starts - 1);
  }

  /** How the process last ended, e.g. `exit code 1`; "" if it never has. */
  get ending(): string {
    return this.#ending;
  }

  /** The cause of the process's end according to its output since the newest start. */
  get fault(): string {
    return faultInLog(this.spec.logPath, this.#logStart);
  }

  /** The process is not restarted because its settings are invalid. */
  get isFinal(): boolean {
    return this.#isFinal;
  }

  async start(): Promise<void> {
    const { command, env, url } = await this.spec.prepare();
    if (this.#stopping) return;
    const [program, ...args] = command as [string, ...string[]];
    this.#logStart = logSize(this.spec.logPath);
    const log = openLog(this.spec.logPath);
    const startedAt = performance.now();
    // The open stdin is the lifeline: it ends with the launcher, even on SIGKILL, and the service then drains.
    // In its own session the process does not receive the terminal's Ctrl-C; the launcher drains the processes in order.
    const more = [
      ...(this.spec.writesForAuthor ? (['pipe'] as const) : []),
      ...(this.spec.exchangesMessages ? (['ipc'] as const) : []),
    ];
    const stdio: StdioOptions = ['pipe', log, log, ...more];
    const child = spawn(program, args, { cwd: this.spec.cwd, env, stdio, detached: true });
    closeSync(log);
    if (this.spec.exchangesMessages) this.#exchangeMessages(child);
    const authorText = this.spec.writesForAuthor ? (child.stdio[AUTHOR_FD] as Readable | null | undefined) : null;
    authorText
      ?.setEncoding('utf8')
      .on('data', (text: string) => this.#events.authorText?.(this, text))
      .on('error', () => {});
    // The pipe of a child that has just ended breaks. Its exit is handled below.
    child.stdin?.on('error', () => {});
    this.#url = url;
    let ended = false;
    const settle = (ending: string) => {
      // A program that cannot start emits only "error"; a running one emits only "exit".
      if (ended) return;
      ended = true;
      this.#ended(ending, performance.now() - startedAt);
    };
    child.once('error', error => settle(error.message)).once('exit', (code, signal) => settle(signal ?? exitCode(code)));
    if (child.pid === undefined) return;
    this.#child = child;
    this.#starts += 1;
    this.#events.changed();
    if (this.#isReported) this.#events.restarted(this, child.pid);
  }

  #exchangeMessages(child: ChildProcess): void {
    // A message to a process that has just ended fails; its exit is handled like any other.
    const send = (message: object) => {
      if (child.connected) child.send(message, () => {});
    };
    child.on('message', message => this.#events.message?.(this, message, send));
    this.#events.connected?.(this, send);
  }

  #ended(ending: string, livedMs: number): void {
    this.#child = null;
    if (this.#stopping) return;
    this.#exits += 1;
    this.#ending = ending;
    this.#isFinal = ending === exitCode(EXIT_CONFIG);
    const waitMs = restartDelay(this.#waitMs, livedMs);
    this.#isReported = this.#isFinal || waitMs !== this.#waitMs || livedMs > waitMs;
    this.#waitMs = waitMs;
    this.#events.changed();
    if (this.#isReported) this.#events.restarting(this, ending, this.#isFinal ? null : waitMs);
    if (!this.#isFinal) this.#timer = setTimeout(() => this.#restart(), this.#waitMs);
  }

  #restart(): void {
    this.start().catch((error: Error) => this.#ended(error.message, 0));
  }

  /** Sends SIGTERM, and SIGKILL after `graceMs`. Resolves with true if the process had to be killed. */
  async stop(graceMs: number): Promise<boolean> {
    this.#stopping = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (child === null) return false;
    const gone = new Promise<void>(resolve => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    let killed = false;
    const timer = setTimeout(() => {
      killed = true;
      child.kill('SIGKILL');
    }, graceMs);
    await gone;
    clearTimeout(timer);
    return killed;
  }

  /** Kills the process as a fault would, so that it is restarted. Resolves with false if it is not running. */
  async crash(): Promise<boolean> {
    const child = this.#child;
    if (child === null || this.#stopping) return false;
    const gone = new Promise<void>(resolve => child.once('exit', () => resolve()));
    child.kill('SIGKILL');
    await gone;
    return true;
  }

  /** Kills the process after a second Ctrl-C. */
  kill(): void {
    this.#stopping = true;
    this.#child?.kill('SIGKILL');
  }
}

function exitCode(code: number | null): string {
  return `exit code ${code}`;
}

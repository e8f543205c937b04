import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { openLog } from './log-file.ts';

/** What to run. `command` is made anew for every start, so that a port that was taken meanwhile can be another. */
export type ProcessSpec = {
  service: string;
  instance: string;
  cwd: string;
  logPath: string;
  prepare: () => Promise<{ command: string[]; env: NodeJS.ProcessEnv; url: string }>;
};

export type ProcessEvents = {
  /** A process was started or has ended; `run.json` is to be rewritten. */
  changed: () => void;
  /** A process ended by itself and is started again after `waitMs`; never again when that is null. Not reported while it dies every 5 s. */
  restarting: (process: SupervisedProcess, ending: string, waitMs: number | null) => void;
  /** A restart that was reported has happened. */
  restarted: (process: SupervisedProcess, pid: number) => void;
};

/** With this code (EX_CONFIG of sysexits.h) our services refuse their settings: the next start would end the same way. */
const EXIT_CONFIG = 78;

const RESTART_MS_MIN = 200;
const RESTART_MS_MAX = 5000;
/** A process that ran this long counts as healthy: the delay starts over. */
const HEALTHY_MS = 30_000;

/**
 * Delay before a restart, doubled from 0.2 s to 5 s; milliseconds.
 * @param previousMs the delay before the last start, 0 for the first
 * @param livedMs how long the process then ran
 */
export function restartDelay(previousMs: number, livedMs: number): number {
  if (previousMs === 0 || livedMs >= HEALTHY_MS) return RESTART_MS_MIN;
  return Math.min(previousMs * 2, RESTART_MS_MAX);
}

/** Keeps one process alive: whatever ends it, it is started again after a growing pause, until `stop`. */
export class SupervisedProcess {
  readonly spec: ProcessSpec;
  readonly #events: ProcessEvents;
  #child: ChildProcess | null = null;
  #url = '';
  #timer: NodeJS.Timeout | undefined;
  #waitMs = 0;
  #stopping = false;
  #endings = 0;
  #hasGivenUp = false;
  #isReported = false;

  constructor(spec: ProcessSpec, events: ProcessEvents) {
    this.spec = spec;
    this.#events = events;
  }

  /** Process id while it runs, else null. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Where it listens since its last start; "" before the first. */
  get url(): string {
    return this.#url;
  }

  /** How often it has ended by itself. */
  get endings(): number {
    return this.#endings;
  }

  /** Whether it is not started again, because its settings are wrong. */
  get hasGivenUp(): boolean {
    return this.#hasGivenUp;
  }

  async start(): Promise<void> {
    const { command, env, url } = await this.spec.prepare();
    if (this.#stopping) return;
    const [program, ...args] = command as [string, ...string[]];
    const log = openLog(this.spec.logPath);
    const startedAt = performance.now();
    // The open stdin is the lifeline: it ends when the launcher dies, however it dies, and a service then drains.
    // Its own session: a terminal's Ctrl-C reaches the launcher alone, which then ends the processes in their order.
    const child = spawn(program, args, { cwd: this.spec.cwd, env, stdio: ['pipe', log, log], detached: true });
    closeSync(log);
    // A child that has just died breaks the pipe; its exit is handled below.
    child.stdin?.on('error', () => {});
    this.#url = url;
    let ended = false;
    const settle = (ending: string) => {
      // A program that cannot be started gives "error" alone, a running one "exit".
      if (ended) return;
      ended = true;
      this.#ended(ending, performance.now() - startedAt);
    };
    child.once('error', error => settle(error.message)).once('exit', (code, signal) => settle(signal ?? exitCode(code)));
    if (child.pid === undefined) return;
    this.#child = child;
    this.#events.changed();
    if (this.#isReported) this.#events.restarted(this, child.pid);
  }

  #ended(ending: string, livedMs: number): void {
    this.#child = null;
    if (this.#stopping) return;
    this.#endings += 1;
    this.#hasGivenUp = ending === exitCode(EXIT_CONFIG);
    const waitMs = restartDelay(this.#waitMs, livedMs);
    this.#isReported = this.#hasGivenUp || waitMs !== this.#waitMs || livedMs > waitMs;
    this.#waitMs = waitMs;
    this.#events.changed();
    if (this.#isReported) this.#events.restarting(this, ending, this.#hasGivenUp ? null : waitMs);
    if (!this.#hasGivenUp) this.#timer = setTimeout(() => this.#restart(), this.#waitMs);
  }

  #restart(): void {
    this.start().catch((error: Error) => this.#ended(error.message, 0));
  }

  /** Asks the process to end (SIGTERM), makes it after `graceMs`; resolves with true when it had to be killed. */
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

  /** Ends the process at once; for a second Ctrl-C. */
  kill(): void {
    this.#stopping = true;
    this.#child?.kill('SIGKILL');
  }
}

function exitCode(code: number | null): string {
  return `exit code ${code}`;
}

import { useEffect, useReducer, useRef } from 'preact/hooks';
import type { KillableProcess } from '../src/kill-routes.ts';
import type { Connection, ConsoleInfo } from './connection.ts';

/** Interval at which a restart is looked for. */
const POLL_MS = 200;
/** A process that has not restarted by then is reported as it is. */
const RESTART_MS_MAX = 60_000;

/** A death on purpose. Times are in milliseconds after the task's first input. */
export type Kill = { instance: string; pid: number; atMs: number; againMs?: number; againPid?: number };

/** The processes of the local cluster, and the kills of this page. */
export class Processes {
  list: readonly KillableProcess[] = [];
  kills: readonly Kill[] = [];
  fault = '';
  readonly #connection: Connection;
  readonly #headers: Record<string, string>;
  readonly #onChange: () => void;
  readonly #stop = new AbortController();

  constructor(connection: Connection, token: string, onChange: () => void) {
    this.#connection = connection;
    this.#headers = { 'x-hopline-launcher-token': token };
    this.#onChange = onChange;
    void this.read();
  }

  close(): void {
    this.#stop.abort();
  }

  async read(): Promise<void> {
    const { signal } = this.#stop;
    const { processes } = await this.#connection
      .json<{ processes: KillableProcess[] }>('/processes.json', { headers: this.#headers, signal })
      // The next reading may succeed. Until then the current list stays.
      .catch(() => ({ processes: this.list }));
    this.list = processes;
    this.#changed();
  }

  /** Kills a process, and follows it until it runs again. `nowMs`: the time of the task. */
  async kill(instance: string, nowMs: () => number): Promise<void> {
    const pid = this.list.find(one => one.instance === instance)?.pid;
    if (typeof pid !== 'number') return;
    const kill: Kill = { instance, pid, atMs: nowMs() };
    this.kills = [...this.kills, kill];
    this.fault = '';
    this.#changed();
    try {
      const path = `/processes/${encodeURIComponent(instance)}/kill`;
      await this.#connection.post(path, {}, this.#headers);
    } catch (error) {
      this.kills = this.kills.filter(one => one !== kill);
      this.fault = (error as Error).message;
      return this.#changed();
    }
    for (const end = performance.now() + RESTART_MS_MAX; performance.now() < end && !this.#stop.signal.aborted; ) {
      await this.read();
      const againPid = this.list.find(one => one.instance === instance)?.pid;
      if (typeof againPid === 'number' && againPid !== pid) {
        this.kills = this.kills.map(one => (one === kill ? { ...kill, againMs: nowMs(), againPid } : one));
        return this.#changed();
      }
      await new Promise(resolve => setTimeout(resolve, POLL_MS));
    }
  }

  #changed(): void {
    if (!this.#stop.signal.aborted) this.#onChange();
  }
}

/** Undefined where the page can kill nothing. */
export function useProcesses(connection: Connection, { killToken }: ConsoleInfo): Processes | undefined {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const processes = useRef<Processes>(undefined);
  if (killToken !== undefined) processes.current ??= new Processes(connection, killToken, () => redraw(undefined));
  useEffect(() => () => processes.current?.close(), []);
  return processes.current;
}

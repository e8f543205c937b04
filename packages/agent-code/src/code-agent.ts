import { setTimeout as sleep } from 'node:timers/promises';
import { type Agent, type AgentEvent, AgentLost, eventsOf, type Turn, type WorkGate } from '@hopline/agent';
import { CodeSession, type HostLink, type Loaded, type SessionListeners } from './code-session.ts';
import type { Code } from './protocol.ts';

export type CodeAgentOptions = SessionListeners & {
  code: Code;
  /** Base of relative paths in `code`. */
  folder: string;
  /** Replaces the description of the code. */
  description?: string | undefined;
  /** Milliseconds in which a host must load the code; default LOAD_MS_MAX. */
  loadMsMax?: number | undefined;
  /** Starts a host, or connects to one. */
  start: () => HostLink | Promise<HostLink>;
};

/** Wait before a host starts again: doubled from the first value up to the second, minus up to half as jitter. */
const RESTART_MS_MIN = 200;
const RESTART_MS_MAX = 5_000;
/** A host that ran this long counts as healthy, and the wait starts again at its minimum. */
const HEALTHY_MS = 30_000;
/** How long a turn waits for a host that is starting. After that, the turn counts as an attempt. */
const START_MS_MAX = 30_000;
const CLOSE_MS_MAX = 5_000;
/**
 * A host that has not loaded its code within this time is killed. It is long, because code may first read a model of gigabytes, but
 * limited, because code may also wait forever.
 */
export const LOAD_MS_MAX = 300_000;

/**
 * The agent of code that runs in a process of its own (ADR 151). Rejects with one sentence if the code exports no agent. A host that ends
 * is started again, and the turns that it ran reject with AgentLost. A host that does not load the code in time is also started again,
 * unless it is the first one; in that case the promise rejects.
 */
export async function createCodeAgent(options: CodeAgentOptions): Promise<Agent> {
  const hosts = new Hosts(options);
  const { name, description, reportsWork, repeatsText, cancels } = await hosts.open();
  const runBatches = (turn: Turn) => batchesOf(hosts, turn);
  return {
    ...(name !== undefined && { name }),
    description: options.description ?? description,
    ...(reportsWork && { reportsWork }),
    ...(repeatsText && { repeatsText }),
    gate: hosts,
    skills: async () => await (await hosts.session()).skills(),
    run: turn => eventsOf(runBatches(turn)),
    runBatches,
    ...(cancels && { cancelRemoteRun: async (run, trace) => await (await hosts.session()).cancelRemoteRun(run, trace) }),
    close: () => hosts.close(),
  };
}

async function* batchesOf(hosts: Hosts, turn: Turn): AsyncGenerator<readonly AgentEvent[]> {
  const session = await hosts.session();
  if (turn.signal.aborted) return;
  const { turn: running, abort } = session.begin(turn);
  const onAbort = () => abort(turn.signal.reason);
  turn.signal.addEventListener('abort', onAbort, { once: true });
  try {
    for (;;) {
      const events = await running.next();
      if (events === undefined) return;
      if (events.length > 0) yield events;
    }
  } finally {
    turn.signal.removeEventListener('abort', onAbort);
    if (!running.isOver) {
      abort(turn.signal.reason);
      // The caller waits for it only as long as an agent may take to stop.
      await running.stopped;
    }
  }
}

/**
 * Runs one host after another. As the gate of a worker it is closed from the end of a host until the next one has loaded the code or has
 * failed to do so; other instances of the agent take the work in the meantime. If no host starts, the work is taken again, so that its
 * tasks fail with a reason.
 */
class Hosts implements WorkGate {
  readonly #options: CodeAgentOptions;
  readonly #closed = new AbortController();
  readonly #listeners = new Set<() => void>();
  #session: Promise<CodeSession> | undefined;
  #waitMs = 0;
  #isOpen = true;

  constructor(options: CodeAgentOptions) {
    this.#options = options;
  }

  /** Starts the first host. */
  async open(): Promise<Loaded> {
    const { session, loaded } = await this.#start();
    this.#session = Promise.resolve(session);
    return loaded;
  }

  /** The host that is running or starting. Rejects with AgentLost if none starts in time. */
  async session(): Promise<CodeSession> {
    const starting = this.#session as Promise<CodeSession>;
    const timeout = new AbortController();
    const late = sleep(START_MS_MAX, undefined, { signal: timeout.signal, ref: false }).then(() => {
      throw new AgentLost("the process of the agent's code does not start", 'code_unavailable');
    });
    try {
      return await Promise.race([starting, late]);
    } finally {
      timeout.abort();
      late.catch(() => {});
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Also ends a host that is starting. */
  async close(): Promise<void> {
    this.#closed.abort();
    const session = await this.#session?.catch(() => undefined);
    await session?.close(CLOSE_MS_MAX);
  }

  async #start(): Promise<{ session: CodeSession; loaded: Loaded }> {
    const { code, folder, loadMsMax = LOAD_MS_MAX } = this.#options;
    const session = new CodeSession(await this.#link(), this.#options);
    const startedMs = performance.now();
    const { signal } = this.#closed;
    const end = () => void session.close(0);
    signal.addEventListener('abort', end, { once: true });
    try {
      const loaded = await session.load(code, folder, loadMsMax);
      void session.ended.then(fault => this.#ended(fault, performance.now() - startedMs));
      return { session, loaded };
    } catch (error) {
      end();
      throw error;
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  /** Rejects when the agent closes. */
  async #link(): Promise<HostLink> {
    const { signal } = this.#closed;
    const starting = Promise.resolve(this.#options.start());
    const closed = Promise.withResolvers<never>();
    const onClose = () => {
      closed.reject(signal.reason);
      starting.then(link => link.kill()).catch(() => {});
    };
    signal.addEventListener('abort', onClose, { once: true });
    return await Promise.race([starting, closed.promise]).finally(() => signal.removeEventListener('abort', onClose));
  }

  #setOpen(isOpen: boolean): void {
    if (this.#isOpen === isOpen) return;
    this.#isOpen = isOpen;
    for (const listener of this.#listeners) listener();
  }

  #ended(fault: AgentLost, livedMs: number): void {
    if (this.#closed.signal.aborted) return;
    this.#setOpen(false);
    const waitMs = this.#nextWait(livedMs);
    const { logger, name } = this.#options;
    logger.warn({ agent: name, reason: fault.word, delay_ms: Math.round(waitMs) }, `${fault.message}; it starts again`);
    this.#session = this.#startAgain(waitMs);
    this.#session.catch(() => {});
  }

  /** Resolves with the next host that has loaded the code, however many starts it takes. Rejects when the agent closes. */
  async #startAgain(firstWaitMs: number): Promise<CodeSession> {
    let waitMs = firstWaitMs;
    for (;;) {
      await sleep(waitMs, undefined, { signal: this.#closed.signal });
      try {
        return (await this.#start()).session;
      } catch (err) {
        if (this.#closed.signal.aborted) throw err;
        waitMs = this.#nextWait(0);
        const { logger, name, showAuthor } = this.#options;
        logger.warn({ agent: name, err, delay_ms: Math.round(waitMs) }, "the process of the agent's code did not start");
        showAuthor(err instanceof AgentLost ? `${err.message}; it starts again` : err);
      } finally {
        this.#setOpen(true);
      }
    }
  }

  #nextWait(livedMs: number): number {
    const isFirst = this.#waitMs === 0 || livedMs >= HEALTHY_MS;
    this.#waitMs = isFirst ? RESTART_MS_MIN : Math.min(this.#waitMs * 2, RESTART_MS_MAX);
    return this.#waitMs * (0.5 + Math.random() / 2);
  }
}

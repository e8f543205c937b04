import { requireAgent, requireWakeKey } from '../names.ts';
import type { WakeUps } from '../wake-ups.ts';

/** The listeners in all simulated processes. */
export type MemoryListeners = Set<{ agent: string; onKey: (key: string) => void }>;

export class MemoryWakeUps implements WakeUps {
  readonly #listeners: MemoryListeners;
  readonly #closed: AbortSignal;

  constructor(listeners: MemoryListeners, closed: AbortSignal) {
    this.#listeners = listeners;
    this.#closed = closed;
  }

  wake(agent: string, key: string): void {
    requireAgent(agent);
    requireWakeKey(key);
    if (this.#closed.aborted) return;
    // Called asynchronously, as over a network.
    for (const listener of this.#listeners)
      if (listener.agent === agent) setImmediate(() => this.#listeners.has(listener) && listener.onKey(key));
  }

  listen(agent: string, onKey: (key: string) => void, signal: AbortSignal): void {
    requireAgent(agent);
    const ended = AbortSignal.any([signal, this.#closed]);
    if (ended.aborted) return;
    const listener = { agent, onKey };
    this.#listeners.add(listener);
    ended.addEventListener('abort', () => this.#listeners.delete(listener), { once: true });
  }
}

import { requireKey } from '../names.ts';
import type { Presence } from '../presence.ts';

export class MemoryPresence implements Presence {
  readonly #members: Set<string>;
  readonly #closed: AbortSignal;

  /** `members`: the members of all simulated processes. */
  constructor(members: Set<string>, closed: AbortSignal) {
    this.#members = members;
    this.#closed = closed;
  }

  enter(member: string, signal: AbortSignal): void {
    requireKey(member);
    const ended = AbortSignal.any([signal, this.#closed]);
    if (ended.aborted) return;
    this.#members.add(member);
    ended.addEventListener('abort', () => this.#members.delete(member), { once: true });
  }

  async isGone(member: string): Promise<boolean> {
    return !this.#closed.aborted && !this.#members.has(member);
  }
}

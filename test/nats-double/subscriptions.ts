import type { ClientConnection } from './client-connection.ts';
import { hasWildcard, Pattern } from './subjects.ts';

/** A subscription of a client. `max`: it ends after this many messages; 0: never. */
export type Subscription = {
  readonly connection: ClientConnection;
  readonly subject: string;
  /** Queue group; one of its members receives each message. Empty: none. */
  readonly queue: string;
  readonly sid: string;
  max: number;
  delivered: number;
};

/** The subscriptions of all clients. */
export class Subscriptions {
  readonly #bySubject = new Map<string, Set<Subscription>>();
  readonly #wildcards = new Map<string, Pattern>();

  add(subscription: Subscription): void {
    const { subject } = subscription;
    const others = this.#bySubject.get(subject);
    if (others !== undefined) others.add(subscription);
    else {
      this.#bySubject.set(subject, new Set([subscription]));
      if (hasWildcard(subject)) this.#wildcards.set(subject, new Pattern(subject));
    }
  }

  remove(subscription: Subscription): void {
    const { subject } = subscription;
    const others = this.#bySubject.get(subject);
    others?.delete(subscription);
    if (others?.size !== 0) return;
    this.#bySubject.delete(subject);
    this.#wildcards.delete(subject);
  }

  hasInterest(subject: string): boolean {
    if (this.#bySubject.has(subject)) return true;
    for (const pattern of this.#wildcards.values()) if (pattern.matches(subject)) return true;
    return false;
  }

  /** Those that receive a message: all without a queue group, and the longest waiting member of each group. */
  receivers(subject: string): Subscription[] {
    const found: Subscription[] = [...(this.#bySubject.get(subject) ?? [])];
    for (const [wildcard, pattern] of this.#wildcards)
      if (wildcard !== subject && pattern.matches(subject)) found.push(...this.#bySubject.get(wildcard)!);
    if (found.every(({ queue }) => queue === '')) return found;
    const groups = new Map<string, Subscription>();
    for (const one of found) {
      if (one.queue === '') continue;
      const chosen = groups.get(one.queue);
      if (chosen === undefined || one.delivered < chosen.delivered) groups.set(one.queue, one);
    }
    return [...found.filter(({ queue }) => queue === ''), ...groups.values()];
  }
}

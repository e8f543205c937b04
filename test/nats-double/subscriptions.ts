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
  readonly #wildcards = new WildcardSubjects();

  add(subscription: Subscription): void {
    const { subject } = subscription;
    const others = this.#bySubject.get(subject);
    if (others !== undefined) others.add(subscription);
    else {
      this.#bySubject.set(subject, new Set([subscription]));
      if (hasWildcard(subject)) this.#wildcards.add(subject);
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
    return this.#bySubject.has(subject) || this.#wildcards.matching(subject).length > 0;
  }

  /** The subscriptions that receive a message: all without a queue group, and in each group the member that has waited the longest. */
  receivers(subject: string): Subscription[] {
    const found: Subscription[] = [...(this.#bySubject.get(subject) ?? [])];
    for (const wildcard of this.#wildcards.matching(subject))
      if (wildcard !== subject) found.push(...this.#bySubject.get(wildcard)!);
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

type Wildcard = { subject: string; pattern: Pattern; order: number };

/** Subjects with wildcards, keyed by the text before their first wildcard, because each connection of nats.js has an inbox of its own. */
class WildcardSubjects {
  readonly #byPrefix = new Map<string, Map<string, Wildcard>>();
  #order = 0;

  add(subject: string): void {
    const pattern = new Pattern(subject);
    const others = this.#byPrefix.get(pattern.prefix);
    const added = { subject, pattern, order: this.#order++ };
    if (others === undefined) this.#byPrefix.set(pattern.prefix, new Map([[subject, added]]));
    else others.set(subject, added);
  }

  delete(subject: string): void {
    const { prefix } = new Pattern(subject);
    const others = this.#byPrefix.get(prefix);
    others?.delete(subject);
    if (others?.size === 0) this.#byPrefix.delete(prefix);
  }

  /** The matching ones, in the order in which they were added. */
  matching(subject: string): string[] {
    const found: Wildcard[] = [];
    for (let end = 0; end >= 0; end = subject.indexOf('.', end) + 1 || -1) {
      for (const one of this.#byPrefix.get(subject.slice(0, end))?.values() ?? [])
        if (one.pattern.matches(subject)) found.push(one);
    }
    if (found.length > 1) found.sort((a, b) => a.order - b.order);
    return found.map(one => one.subject);
  }
}

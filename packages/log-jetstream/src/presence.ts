import { presenceSubject } from '@hopline/events';
import { type Presence, requireKey } from '@hopline/log';
import { NoRespondersError, RequestError } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';
import { LastingSubscription } from './lasting-subscription.ts';

/** Without a subscriber the server answers within a millisecond. A member that is present never answers. */
const ANSWER_MS_MAX = 250;

/**
 * Uses core NATS: a subscription ends with its connection, and the server answers a request to a subject without subscribers at once ("no
 * responders").
 */
export class NatsPresence implements Presence {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  enter(member: string, signal: AbortSignal): void {
    requireKey(member);
    if (signal.aborted) return;
    new LastingSubscription(this.#connection, this.#subject(member), { onMsg: () => {}, signal });
  }

  async isGone(member: string): Promise<boolean> {
    try {
      await this.#connection.nc.request(this.#subject(member), '', { timeout: ANSWER_MS_MAX });
      return false;
    } catch (error) {
      return error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders());
    }
  }

  #subject(member: string): string {
    return this.#connection.names.subject(presenceSubject(member));
  }
}

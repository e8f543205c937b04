import { wakeSubject } from '@hopline/events';
import { isWakeKey, requireAgent, requireWakeKey, type WakeUps } from '@hopline/log';
import type { Msg } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';
import { LastingSubscription } from './lasting-subscription.ts';

/** Core NATS without a stream: a wake-up is useless a moment later, so an unreceived one may be lost. */
export class NatsWakeUps implements WakeUps {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  wake(agent: string, key: string): void {
    requireAgent(agent);
    requireWakeKey(key);
    this.#connection.send(this.#connection.names.subject(wakeSubject(agent)), key);
  }

  listen(agent: string, onKey: (key: string) => void, signal: AbortSignal): void {
    requireAgent(agent);
    if (signal.aborted) return;
    const onMsg = (msg: Msg) => {
      const key = msg.string();
      if (isWakeKey(key)) onKey(key);
    };
    new LastingSubscription(this.#connection, this.#connection.names.subject(wakeSubject(agent)), { onMsg, signal });
  }
}

import { type Msg, nanos } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';

export const DONE = '+ACK';
const TERMINATED = '+TERM';
export const NAK = '-NAK';
const IN_PROGRESS = '+WPI';

/** Never delivers the item again. */
export function terminate(connection: Connection, msg: Msg): void {
  respond(connection, msg, TERMINATED);
}

/** The server delivers the item again if it receives nothing for another ack wait. */
export function inProgress(connection: Connection, msg: Msg): void {
  respond(connection, msg, IN_PROGRESS);
}

/** The server delivers the item again after `waitMs`; 0: at once. Returns false without a connection. */
export function later(connection: Connection, msg: Msg, waitMs: number): boolean {
  return respond(connection, msg, returned(waitMs));
}

/** The response for another delivery after `waitMs`; 0: at once. */
export function returned(waitMs: number): string {
  return waitMs > 0 ? `${NAK} ${JSON.stringify({ delay: nanos(Math.ceil(waitMs)) })}` : NAK;
}

/** Not confirmed: if the response is lost, the server delivers the item again after the ack wait. */
function respond(connection: Connection, msg: Msg, response: string): boolean {
  return msg.reply !== undefined && msg.reply !== '' && connection.send(msg.reply, response);
}

import { type Role, workFilter } from '@hopline/events';
import { ROOM_READ_MS } from '@hopline/log';
import { JetStreamApiError } from '@nats-io/jetstream';
import type { Connection } from './connection.ts';

/** Share of the work stream's bytes for new messages: the rest is for calls of tasks that run. */
const NEW_WORK_SHARE = 0.75;
export const CONSUMER_NOT_FOUND = 10014;

type Reading = { problem: Promise<string | undefined>; readAtMs: number };

/**
 * Whether the work stream has room for new messages of a role. All roles share its bytes, so one role without workers must not fill
 * it: servers ask before they accept a message.
 */
export class WorkRoom {
  readonly #connection: Connection;
  readonly #itemsMax: number;
  /** One per role that this process serves. */
  readonly #readings = new Map<Role, Reading>();

  constructor(connection: Connection, itemsMax: number) {
    this.#connection = connection;
    this.#itemsMax = itemsMax;
  }

  /** Undefined when there is room, or while NATS does not answer: then the append of the message fails. */
  problem(role: Role): Promise<string | undefined> {
    const nowMs = performance.now();
    const reading = this.#readings.get(role);
    if (reading !== undefined && nowMs - reading.readAtMs < ROOM_READ_MS) return reading.problem;
    const problem = this.#connection.connected ? this.#read(role).catch(() => undefined) : Promise.resolve(undefined);
    this.#readings.set(role, { problem, readAtMs: nowMs });
    return problem;
  }

  async #read(role: Role): Promise<string | undefined> {
    const { jsm, names } = this.#connection;
    const { state, config } = await jsm.streams.info(names.workStream);
    if (config.max_bytes > 0 && state.bytes >= config.max_bytes * NEW_WORK_SHARE)
      return `${names.workStream} holds ${state.bytes} of ${config.max_bytes} bytes`;
    // Fewer items than the bound in the whole stream are fewer in each role.
    if (state.messages < this.#itemsMax) return undefined;
    const items = await this.#items(role);
    return items < this.#itemsMax ? undefined : `${items} items of work wait for ${role}`;
  }

  async #items(role: Role): Promise<number> {
    const { jsm, names } = this.#connection;
    try {
      const { num_pending, num_ack_pending } = await jsm.consumers.info(names.workStream, consumerName(role));
      return num_pending + num_ack_pending;
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== CONSUMER_NOT_FOUND) throw error;
      // No worker of this role has ever started.
      const { state } = await jsm.streams.info(names.workStream, { subjects_filter: names.subject(workFilter(role)) });
      return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
    }
  }
}

/** A consumer name must not contain dots. */
export function consumerName(role: Role): string {
  return role.replace('.', '-');
}

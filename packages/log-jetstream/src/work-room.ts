import { type Owner, type Role, tenantTokenOf, tenantWorkFilter, workFilter } from '@hopline/events';
import { BoundedMap, LogFull, ROOM_READ_MS, TenantFull } from '@hopline/log';
import { withinMs } from '@hopline/telemetry';
import type { Connection } from './connection.ts';
import { QUEUES, type Queue } from './names.ts';
import { isConsumerNotFound } from './stream-requests.ts';

/** Share of the work stream's bytes for new messages. The rest is for calls of running tasks. */
const NEW_WORK_SHARE = 0.75;
/** A message does not wait longer for the answer. */
const READ_MS_MAX = 2_000;
/** Cached readings. The oldest one is dropped first. */
const READINGS_MAX = 10_000;

type Problem = LogFull | undefined;
type Reading = { problem: Promise<Problem>; readAtMs: number };

/**
 * Answers whether the work stream has room for new messages of a role and of a tenant. All roles share its bytes, so neither a role
 * without workers nor a tenant may fill it: servers ask before they accept a message.
 */
export class WorkRoom {
  readonly #connection: Connection;
  readonly #roleItemsMax: number;
  readonly #tenantItemsMax: number;
  /** One reading for each role that this process serves, and one for each tenant of that role. */
  readonly #readings = new BoundedMap<string, Reading>(READINGS_MAX);

  constructor(connection: Connection, { roleItemsMax, tenantItemsMax }: { roleItemsMax: number; tenantItemsMax: number }) {
    this.#connection = connection;
    this.#roleItemsMax = roleItemsMax;
    this.#tenantItemsMax = tenantItemsMax;
  }

  /** Undefined if there is room, or while NATS does not answer, in which case the append of the message fails. */
  async problem(role: Role, owner: Owner | undefined): Promise<Problem> {
    const tenant = tenantTokenOf(owner);
    const ofRole = this.#recent(role, () => this.#ofRole(role));
    const ofTenant = tenant === undefined ? undefined : this.#recent(`${role} ${tenant}`, () => this.#ofTenant(role, tenant));
    return (await ofRole) ?? (await ofTenant);
  }

  #recent(key: string, read: () => Promise<Problem>): Promise<Problem> {
    const nowMs = performance.now();
    const reading = this.#readings.get(key);
    if (reading !== undefined && nowMs - reading.readAtMs < ROOM_READ_MS) return reading.problem;
    const problem = this.#connection.connected
      ? withinMs(read(), READ_MS_MAX).catch(() => undefined)
      : Promise.resolve(undefined);
    this.#readings.set(key, { problem, readAtMs: nowMs });
    return problem;
  }

  async #ofRole(role: Role): Promise<Problem> {
    const { streams, names } = this.#connection;
    const { state, config } = await streams.info(names.workStream);
    if (config.max_bytes > 0 && state.bytes >= config.max_bytes * NEW_WORK_SHARE)
      return new LogFull(`${names.workStream} holds ${state.bytes} of ${config.max_bytes} bytes`);
    // If the whole stream has fewer items than the limit of one role, so does each role.
    if (state.messages < this.#roleItemsMax) return undefined;
    const counts = await Promise.all(QUEUES.map(queue => this.#itemsOfQueue(role, queue)));
    const items = counts.reduce((sum, count) => sum + count, 0);
    return items < this.#roleItemsMax ? undefined : new LogFull(`${items} items of work wait for ${role}`);
  }

  async #ofTenant(role: Role, tenant: string): Promise<Problem> {
    const { streams, names } = this.#connection;
    const { state } = await streams.info(names.workStream);
    if (state.messages < this.#tenantItemsMax) return undefined;
    const items = await this.#stored(tenantWorkFilter(role, tenant));
    return items < this.#tenantItemsMax ? undefined : new TenantFull(`${items} items of work of one tenant wait for ${role}`);
  }

  async #itemsOfQueue(role: Role, queue: Queue): Promise<number> {
    const { streams } = this.#connection;
    try {
      const { num_pending, num_ack_pending } = await streams.consumer(role, queue);
      return num_pending + num_ack_pending;
    } catch (error) {
      if (!isConsumerNotFound(error)) throw error;
      // There is no consumer if no worker of this role has ever started.
      return this.#stored(workFilter(role, queue));
    }
  }

  async #stored(filter: string): Promise<number> {
    const { streams, names } = this.#connection;
    const { state } = await streams.info(names.workStream, names.subject(filter));
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  }
}

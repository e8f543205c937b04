import { parseObject } from '@hopline/a2a';
import { isRole, type Role, TENANT_QUEUES, WORK_PREFIX, workFilter } from '@hopline/events';
import type { ConsumerInfo } from '@nats-io/jetstream';
import type { Connection } from './connection.ts';
import { BUCKETS, consumerName, type LogNames, QUEUES } from './names.ts';
import type { JetStreamLogOptions } from './options.ts';
import { checkPeriodically, reportFailedCheck } from './periodic-check.ts';
import { isReaderName } from './reader-name.ts';
import { isOutage } from './retry.ts';

/**
 * Removes objects from the streams of the log that Hopline did not create and that would exhaust a shared limit. Any user of the log may
 * create durable consumers, and can have answers of NATS stored as work items that no worker can run. Both would otherwise stay until their
 * age limit.
 */

/** Time between two checks. One client creates about 700 consumers a second, far fewer than a stream allows. */
const UNKNOWN_CHECK_MS = 10_000;
/**
 * Consumers that the server removes within this time after their last reader has left are tolerated: operators use them to inspect a
 * stream.
 */
const SHORT_LIVED_MS_MAX = 5 * 60_000;
/** Number of short-lived consumers of other clients that may stay on a stream. If there are more, all of them are removed. */
export const GUEST_CONSUMERS_MAX = 64;
/** When the work stream uses this share of its bytes or more, it is searched for items that no worker takes. */
const WORK_SEARCH_SHARE = 1 / 8;
const REMOVALS_AT_ONCE_MAX = 32;
/** A user without the permission tries again after this time, because the permission may be granted in the meantime. */
const DENIED_MS = 10 * 60_000;
/** Maximum number of subjects of known roles that one check removes. */
const SUBJECTS_PER_CHECK_MAX = 10_000;
const NANOS_PER_MS = 1_000_000;

/** Checks the streams until the log is closed. */
export function removeUnknown(
  connection: Connection,
  { keptConsumers, checkMs = UNKNOWN_CHECK_MS }: NonNullable<JetStreamLogOptions['removesUnknown']>,
): void {
  const work = new UnknownWork(connection);
  let deniedUntil = 0;
  // If a check fails because there is no leader, the next check does its work.
  const onError = (error: unknown) => {
    if (connection.toDenied(error) !== undefined) deniedUntil = performance.now() + DENIED_MS;
    else reportFailedCheck(connection, 'unknown consumers and work', error);
  };
  const check = async () => {
    if (!connection.connected || performance.now() < deniedUntil) return;
    for (const stream of connection.names.allStreams()) await removeConsumers(connection, stream, keptConsumers).catch(onError);
    await work.remove().catch(onError);
  };
  checkPeriodically(connection, checkMs, 'unknown consumers and work', check);
}

type ListedConsumer = Pick<ConsumerInfo, 'name'> & {
  config: Pick<ConsumerInfo['config'], 'durable_name' | 'inactive_threshold' | 'filter_subject'>;
};

/** The consumers of a stream that must be removed. */
export function unknownConsumers(
  listed: readonly ListedConsumer[],
  isWorkers: (consumer: ListedConsumer) => boolean,
  keptConsumers: readonly string[],
): string[] {
  const others = listed.filter(consumer => !isWorkers(consumer) && !isKept(consumer.name, keptConsumers));
  const lasting = others.filter(consumer => !isShortLived(consumer));
  const guests = others.filter(consumer => isShortLived(consumer) && !isReaderName(consumer.name));
  return [...lasting, ...(guests.length > GUEST_CONSUMERS_MAX ? guests : [])].map(({ name }) => name);
}

function isKept(name: string, keptConsumers: readonly string[]): boolean {
  return keptConsumers.some(kept => (kept.endsWith('*') ? name.startsWith(kept.slice(0, -1)) : name === kept));
}

function isShortLived({ config }: ListedConsumer): boolean {
  const { durable_name: durable, inactive_threshold: threshold = 0 } = config;
  return durable === undefined && threshold > 0 && threshold <= SHORT_LIVED_MS_MAX * NANOS_PER_MS;
}

/** Whether a consumer of the work stream belongs to a queue of a role. */
export function isWorkersConsumer({ name, config }: ListedConsumer, names: LogNames): boolean {
  const role = roleOf(name);
  if (!isRole(role)) return false;
  return QUEUES.some(
    queue => consumerName(role, queue) === name && config.filter_subject === names.subject(workFilter(role, queue)),
  );
}

/** Parses a consumer name that `consumerName` made. */
function roleOf(consumer: string): string {
  return consumer.replace(/_\d+$/, '').replace(/^agent-/, 'agent.');
}

async function removeConsumers(connection: Connection, stream: string, keptConsumers: readonly string[]): Promise<void> {
  const { jsm, names, onEvent } = connection;
  const listed: ListedConsumer[] = [];
  for await (const { name, config } of jsm.consumers.list(stream)) listed.push({ name, config });
  const isWorkers = (consumer: ListedConsumer) => stream === names.workStream && isWorkersConsumer(consumer, names);
  const unknown = unknownConsumers(listed, isWorkers, keptConsumers);
  const removed = await atOnce(unknown, name => jsm.consumers.delete(stream, name));
  if (removed.length > 0) onEvent({ type: 'unknown-consumers', stream, count: removed.length, name: removed[0]! });
}

/** Removes the items, at most REMOVALS_AT_ONCE_MAX at a time. Resolves with the items that were removed. */
async function atOnce(items: readonly string[], remove: (item: string) => Promise<boolean>): Promise<string[]> {
  const left = [...items];
  const removed: string[] = [];
  const next = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) {
      const isRemoved = await remove(item).catch(error => {
        if (!isOutage(error)) throw error;
        // Another relay may have removed it.
        return false;
      });
      if (isRemoved) removed.push(item);
    }
  };
  await Promise.all(Array.from({ length: REMOVALS_AT_ONCE_MAX }, next));
  return removed;
}

/**
 * The place of an item of work in the queue. `role`: the role in the subject, which may not exist. `inQueue`: whether a worker of that role
 * would take the item.
 */
export function workPlaceOf(subject: string): { role: string; inQueue: boolean } {
  const [, , first = '', ...rest] = subject.split('.');
  const role = first === 'agent' && rest.length > 0 ? `agent.${rest.shift()}` : first;
  const isOfTenant = rest.length === 3 && /^\d$/.test(rest[0]!) && Number(rest[0]) < TENANT_QUEUES;
  return { role, inQueue: isRole(role) && (rest.length === 1 || isOfTenant) };
}

/** Whether a payload is a record of Hopline, of any version. Answers of NATS are JSON without a version, or empty. */
export function isRecord(payload: Uint8Array): boolean {
  return typeof parseObject(Buffer.from(payload).toString())?.v === 'number';
}

/**
 * Removes items of unknown roles, items outside all queues, and answers of NATS from a work stream that is filling up. A role is known
 * while an agent of that name is registered or a worker's consumer exists, so an agent that is away keeps its work.
 */
class UnknownWork {
  readonly #connection: Connection;
  /** Roles that were unknown at the last check. A worker that is starting creates its consumer before the next check. */
  #suspects = new Set<string>();
  /** Subjects whose first message is a record, with their numbers of items. */
  #records = new Map<string, number>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async remove(): Promise<void> {
    const { jsm, names, onEvent } = this.#connection;
    const stream = names.workStream;
    const { config, state } = await jsm.streams.info(stream);
    if (config.max_bytes <= 0 || state.bytes < config.max_bytes * WORK_SEARCH_SHARE) {
      this.#suspects.clear();
      this.#records.clear();
      return;
    }
    const known = await this.#knownRoles();
    const unknown = new Map<string, number>();
    const misplaced: string[] = [];
    const placed = new Map<string, number>();
    for (const [subject, count] of await this.#subjects(stream, `${names.subject(WORK_PREFIX)}.>`)) {
      const { role, inQueue } = workPlaceOf(subject.slice(names.subject('').length));
      if (!known.has(role)) unknown.set(role, (unknown.get(role) ?? 0) + count);
      else if (inQueue) placed.set(subject, count);
      else misplaced.push(subject);
    }
    const due = [...unknown.keys()].filter(role => this.#suspects.has(role));
    this.#suspects = new Set(unknown.keys());
    // If the subject is a prefix of other subjects, only its own items are removed.
    const filters = due.flatMap(role => (role === 'agent' ? [role] : [role, `${role}.>`]));
    let count = 0;
    const purge = async (filter: string) => {
      const { purged } = await jsm.streams.purge(stream, { filter });
      count += purged;
      return purged > 0;
    };
    const ofRoles = filters.map(filter => names.subject(`${WORK_PREFIX}.${filter}`));
    const unreadable = [...misplaced, ...(await this.#answersIn(placed))];
    const [name] = await atOnce([...ofRoles, ...unreadable.slice(0, SUBJECTS_PER_CHECK_MAX)], purge);
    if (name !== undefined) onEvent({ type: 'unknown-work', stream, count, name });
  }

  /**
   * Subjects of queues whose oldest message is an answer of NATS. All their messages are then such answers: in any other queue, the oldest
   * message is a record.
   */
  async #answersIn(placed: ReadonlyMap<string, number>): Promise<string[]> {
    const { names } = this.#connection;
    for (const [subject, count] of this.#records) if (placed.get(subject) !== count) this.#records.delete(subject);
    const unread = [...placed.keys()].filter(subject => !this.#records.has(subject)).slice(0, SUBJECTS_PER_CHECK_MAX);
    return atOnce(unread, async subject => {
      // nats.js has no method that reads the oldest message of a subject. The request fails if a worker has taken the item.
      const oldest = { next_by_subj: subject, seq: 1 };
      const { message } = await this.#connection.api<{ message: { data?: string } }>(
        `STREAM.MSG.GET.${names.workStream}`,
        oldest,
      );
      if (!isRecord(Buffer.from(message.data ?? '', 'base64'))) return true;
      this.#records.set(subject, placed.get(subject)!);
      return false;
    });
  }

  async #knownRoles(): Promise<Set<string>> {
    const { jsm, names } = this.#connection;
    const known = new Set<string>(['supervisor'] satisfies Role[]);
    for await (const consumer of jsm.consumers.list(names.workStream))
      if (isWorkersConsumer(consumer, names)) known.add(roleOf(consumer.name));
    const bucket = names.bucket(BUCKETS.agents);
    for (const [subject] of await this.#subjects(`KV_${bucket}`, `$KV.${bucket}.>`)) known.add(`agent.${subject.split('.')[2]}`);
    return known;
  }

  async #subjects(stream: string, filter: string): Promise<[subject: string, count: number][]> {
    const { state } = await this.#connection.jsm.streams.info(stream, { subjects_filter: filter });
    return Object.entries(state.subjects ?? {});
  }
}

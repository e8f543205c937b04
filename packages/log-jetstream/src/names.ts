import { GROUPS_MAX, GROUPS_TOTAL_MAX, Layouts, type Role, SHARDS_MAX, TENANT_QUEUES } from '@hopline/events';
import { LogMismatch } from '@hopline/log';

/** Names without a prefix. */
export const INPUTS_STREAM = 'A2A_RAW';
export const FACTS_STREAM = 'A2A_LOG';
export const WORK_STREAM = 'A2A_WORK';
export const BUCKETS = {
  leases: 'hopline_leases',
  tasks: 'hopline_tasks',
  taskLists: 'hopline_task_lists',
  agents: 'hopline_agents',
  messageIds: 'hopline_message_ids',
  contexts: 'hopline_contexts',
  pushConfigs: 'hopline_push_configs',
  pushProgress: 'hopline_push_progress',
  requeues: 'hopline_requeues',
} as const;

/** Letters, digits, `_` and `-`: the characters allowed in streams, buckets and subject tokens alike. */
export const PREFIX_FORM = /^[A-Za-z0-9_-]{1,32}$/;

/**
 * The names of one cluster in a NATS account: streams, subjects and buckets. With a prefix several clusters share one account.
 * Consumers need no prefix, because their names belong to a stream. PROTOCOL.md sections 2.1 and 2.4.
 */
export class LogNames {
  /** The streams of inputs and of facts, one for each stream group. */
  readonly inputsStreams: readonly string[];
  readonly factsStreams: readonly string[];
  readonly workStream: string;
  readonly #prefix: string;

  /** The layouts whose streams are named. Names that were made for a number of groups have one layout with all shards. */
  readonly layouts: Layouts;

  /**
   * Throws LogMismatch for a prefix that a name cannot contain, or for an impossible number of stream groups. `layouts` may be just a
   * number of stream groups.
   */
  constructor(prefix = '', layouts: Layouts | number = 1) {
    const groups = typeof layouts === 'number' ? layouts : layouts.groups;
    if (prefix !== '' && !PREFIX_FORM.test(prefix)) throw new LogMismatch('the prefix must be 1 to 32 of A-Z, a-z, 0-9, _ and -');
    if (!Number.isInteger(groups) || groups < 1 || groups > GROUPS_TOTAL_MAX)
      throw new LogMismatch(`stream groups must be a whole number from 1 to ${GROUPS_TOTAL_MAX}`);
    this.#prefix = prefix;
    this.layouts = typeof layouts === 'number' ? ofGroups(layouts) : layouts;
    this.inputsStreams = this.#grouped(INPUTS_STREAM, groups);
    this.factsStreams = this.#grouped(FACTS_STREAM, groups);
    this.workStream = this.#named(WORK_STREAM);
  }

  /** The names of the same cluster with other layouts, or another number of stream groups. */
  with(layouts: Layouts | number): LogNames {
    return new LogNames(this.#prefix, layouts);
  }

  /** The stream with the inputs of a shard. */
  inputsStreamOf(shard: number): string {
    return this.inputsStreams[this.layouts.groupOf(shard)]!;
  }

  /** The stream with the facts of a shard. */
  factsStreamOf(shard: number): string {
    return this.factsStreams[this.layouts.groupOf(shard)]!;
  }

  /** The stream of a subject to which Hopline publishes records, work or entries of a bucket. */
  streamOf(subject: string): string {
    const tokens = subject.split('.', 4);
    if (tokens[0] === '$KV') return `KV_${tokens[1]}`;
    const [kind, shard = ''] = tokens.slice(this.#prefix === '' ? 1 : 2);
    if (kind !== 'raw' && kind !== 'log') return this.workStream;
    const streams = kind === 'raw' ? this.inputsStreams : this.factsStreams;
    return streams[this.layouts.groups === 1 ? 0 : this.layouts.groupOf(Number.parseInt(shard, 16))]!;
  }

  /** HOPLINE_PREFIX; empty if it is not set. */
  get prefix(): string {
    return this.#prefix;
  }

  /** `prefix.a2a.raw.…`; without a prefix the subject itself. */
  subject(subject: string): string {
    return this.#prefix === '' ? subject : `${this.#prefix}.${subject}`;
  }

  /** The bucket, one of BUCKETS. */
  bucket(name: string): string {
    return this.#named(name);
  }

  /** Streams, including the streams of buckets. */
  allStreams(): string[] {
    const buckets = Object.values(BUCKETS).map(name => `KV_${this.bucket(name)}`);
    return [...this.inputsStreams, ...this.factsStreams, this.workStream, ...buckets];
  }

  /** The first group has the plain name, so that a log with one group keeps the names that its streams always had. */
  #grouped(name: string, groups: number): string[] {
    return Array.from({ length: groups }, (_, group) => this.#named(group === 0 ? name : `${name}_${group}`));
  }

  #named(name: string): string {
    return this.#prefix === '' ? name : `${this.#prefix}_${name}`;
  }
}

/** Layouts for the names of this many groups. Names do not depend on shards, so each layout has the largest number of them. */
function ofGroups(groups: number): Layouts {
  const first = { begins: 0, shards: SHARDS_MAX, groups: Math.min(groups, GROUPS_MAX) };
  const list = [first];
  for (let left = groups - first.groups; left > 0; left -= GROUPS_MAX)
    list.push({ begins: list.length, shards: SHARDS_MAX, groups: Math.min(left, GROUPS_MAX) });
  return new Layouts(list);
}

/** A queue of a role: the one for work without an owner (undefined), or one of the tenants' queues. Each has its own consumer. */
export type Queue = number | undefined;

export const QUEUES: readonly Queue[] = [undefined, ...Array.from({ length: TENANT_QUEUES }, (_, queue) => queue)];

/** A consumer name must not contain dots; names of agents contain no underscore. */
export function consumerName(role: Role, queue: Queue): string {
  const name = role.replace('.', '-');
  return queue === undefined ? name : `${name}_${queue}`;
}

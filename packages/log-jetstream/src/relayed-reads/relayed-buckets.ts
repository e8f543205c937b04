import type { InputRecord, Owner } from '@hopline/events';
import { type Entry, type LeaseValue, requireKey, requireTaskId, type TaskIndexEntry, type TaskListValue } from '@hopline/log';
import { decodeInput, decodeValue } from '../codec.ts';
import type { NewestMessage } from '../direct-gets.ts';
import { ENTRY_CHECKS } from '../entry-checks.ts';
import { JetStreamInputs } from '../inputs.ts';
import { JetStreamKeyValue } from '../key-value.ts';
import type { AnsweredMessage } from './answers.ts';
import type { ReadClient } from './read-client.ts';
import { type EntryBucket, FILTERS_PER_REQUEST_MAX } from './requests.ts';

/**
 * The inputs and buckets that a sub-agent may read in part, through relays. It has no permission for the methods that are not overridden
 * here, except for appending inputs.
 */

/** An agent compares a duplicate with the input that is already stored in its place. */
export class RelayedInputs extends JetStreamInputs {
  readonly #client: ReadClient;

  constructor(client: ReadClient, ...inputs: ConstructorParameters<typeof JetStreamInputs>) {
    super(...inputs);
    this.#client = client;
  }

  override async recordAt(task: string, seq: number): Promise<InputRecord | undefined> {
    requireTaskId(task);
    const { messages } = await this.#client.ask('an input of a task', { op: 'input', task, seq });
    const record = messages[0] && decodeInput(messages[0].data);
    return typeof record === 'string' ? undefined : record;
  }

  /** Relays show an agent only inputs of its own. One that retention has removed looks like that of another writer, and is stored again, which relays recognize. */
  protected override async isOwn(task: string, seq: number): Promise<boolean> {
    return (await this.recordAt(task, seq)) !== undefined;
  }
}

/** A bucket with single entries, which the agent writes itself. */
export class RelayedEntries<V> extends JetStreamKeyValue<V> {
  readonly #client: ReadClient;
  readonly #bucket: EntryBucket;

  constructor(client: ReadClient, name: EntryBucket, ...bucket: ConstructorParameters<typeof JetStreamKeyValue<V>>) {
    super(...bucket);
    this.#client = client;
    this.#bucket = name;
  }

  protected override async newest(key: string): Promise<NewestMessage | null> {
    requireKey(key);
    const { messages } = await this.#client.ask(`an entry of ${this.#bucket}`, { op: 'entry', bucket: this.#bucket, key });
    return messages[0] ?? null;
  }
}

/** The index entries of tasks of the agent's own clients. */
export class RelayedIndex extends JetStreamKeyValue<TaskIndexEntry> {
  readonly #client: ReadClient;

  constructor(client: ReadClient, ...bucket: ConstructorParameters<typeof JetStreamKeyValue<TaskIndexEntry>>) {
    super(...bucket);
    this.#client = client;
  }

  override async get(task: string): Promise<Entry<TaskIndexEntry> | undefined> {
    requireTaskId(task);
    const { messages } = await this.#client.ask('the index entry of a task', { op: 'index', task });
    return entriesOf<TaskIndexEntry>(messages, ENTRY_CHECKS.tasks)[0];
  }
}

/** The lists of the agent's own clients. */
export class RelayedLists extends JetStreamKeyValue<TaskListValue> {
  readonly #client: ReadClient;

  constructor(client: ReadClient, ...bucket: ConstructorParameters<typeof JetStreamKeyValue<TaskListValue>>) {
    super(...bucket);
    this.#client = client;
  }

  override async match(filters: readonly string[], owner: Owner = {}): Promise<Entry<TaskListValue>[]> {
    const entries: Entry<TaskListValue>[] = [];
    for (let at = 0; at < filters.length; at += FILTERS_PER_REQUEST_MAX) {
      const some = filters.slice(at, at + FILTERS_PER_REQUEST_MAX);
      const { messages } = await this.#client.ask('task lists', { op: 'lists', owner, filters: some });
      entries.push(...entriesOf<TaskListValue>(messages, ENTRY_CHECKS.taskLists));
    }
    return entries;
  }

  override async count(filter: string, owner: Owner = {}): Promise<number> {
    return (await this.#client.ask('task lists', { op: 'count', owner, filter })).end.count ?? 0;
  }
}

/** Which shards have an owner that writes task lists. The other members of a lease name tasks, so relays leave them out. */
export class RelayedLeases extends JetStreamKeyValue<LeaseValue> {
  readonly #client: ReadClient;

  constructor(client: ReadClient, ...bucket: ConstructorParameters<typeof JetStreamKeyValue<LeaseValue>>) {
    super(...bucket);
    this.#client = client;
  }

  override async match(): Promise<Entry<LeaseValue>[]> {
    return entriesOf<LeaseValue>((await this.#client.ask('the leases of shards', { op: 'listed' })).messages);
  }
}

function entriesOf<V>(
  messages: readonly AnsweredMessage[],
  isValid: (value: Record<string, unknown>, key: string) => boolean = () => true,
): Entry<V>[] {
  return messages.flatMap(({ task: key = '', seq: revision, data }) => {
    const value = decodeValue(data);
    return value !== undefined && isValid(value, key) ? [{ key, value: value as V, revision }] : [];
  });
}

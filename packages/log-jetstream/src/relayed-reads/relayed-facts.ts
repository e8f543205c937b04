import type { FactRecord, Owner } from '@hopline/events';
import {
  BoundedMap,
  type FactLog,
  type FollowOptions,
  type FollowSource,
  type FollowStart,
  follow,
  LogDenied,
  type LogExtent,
  type RecordFacts,
  type RecordMark,
  requireTaskId,
  type StoredFacts,
  taskOfFactsId,
} from '@hopline/log';
import { decodeFacts, idOf, originOf } from '../codec.ts';
import { JetStreamLive } from '../live-record.ts';
import { newestFactsOf, tailOf } from '../newest-facts.ts';
import { readExtents } from '../retention.ts';
import type { AnsweredMessage } from './answers.ts';
import { type Followed, FollowedTasks } from './followed-tasks.ts';
import type { ReadClient } from './read-client.ts';

/**
 * Number of earlier tasks of conversations whose paths are remembered: the newest record of such a task is read first, its other records later.
 */
const PATHS_MAX = 1_024;

/** The facts as a sub-agent reads them: through relays, which check that the task is the agent's own. It writes no facts. */
export class RelayedFacts implements FactLog {
  readonly #client: ReadClient;
  readonly #followed: FollowedTasks;
  readonly #follow: FollowOptions;
  readonly #paths = new BoundedMap<string, readonly string[]>(PATHS_MAX);

  constructor(client: ReadClient, options: FollowOptions) {
    this.#client = client;
    this.#followed = new FollowedTasks(client);
    this.#follow = options;
  }

  async last(taskId: string, by?: readonly string[]): Promise<StoredFacts | undefined> {
    requireTaskId(taskId);
    if (by !== undefined) this.#paths.set(taskId, by);
    const newest = await this.#newest(taskId);
    return newest && newestFactsOf(newest, taskId, () => this.read(taskId, 1));
  }

  async lastOfEach(taskIds: readonly string[]): Promise<Map<string, StoredFacts>> {
    const found = new Map<string, StoredFacts>();
    for (const taskId of taskIds) requireTaskId(taskId);
    for (let at = 0; at < taskIds.length; at += TASKS_PER_REQUEST) {
      const tasks = taskIds.slice(at, at + TASKS_PER_REQUEST);
      const { messages } = await this.#client.ask('the newest records of tasks', { op: 'newest-of', tasks });
      for (const message of messages) {
        const { task = '' } = message;
        const record = decodeFacts(message.data, task);
        const stored = record ? storedOf(message, record) : await this.last(task);
        if (stored !== undefined) found.set(task, stored);
      }
    }
    return found;
  }

  read(taskId: string, from: number, _owner?: Owner, upTo?: number): AsyncGenerator<StoredFacts, number> {
    requireTaskId(taskId);
    return this.#read(taskId, from, upTo);
  }

  async follow(taskId: string, after: FollowStart, signal: AbortSignal): Promise<AsyncIterable<StoredFacts>> {
    requireTaskId(taskId);
    const ended = AbortSignal.any([signal, this.#client.connection.closed]);
    return follow(this.#source(taskId, after), after, ended, this.#follow);
  }

  extent(): Promise<LogExtent> {
    const { connection } = this.#client;
    return readExtents(connection, connection.names.factsStreams, connection.layouts);
  }

  isLost({ seq, id }: RecordMark): Promise<boolean> {
    return this.#isLost(taskOfFactsId(id), seq, id);
  }

  async append(): Promise<never> {
    throw new LogDenied('a sub-agent writes no facts');
  }

  readStoredShard(): AsyncIterable<readonly RecordFacts[]> {
    throw new LogDenied('a sub-agent reads no shards');
  }

  async #newest(task: string): Promise<AnsweredMessage | undefined> {
    const request = { op: 'newest', task, ...this.#pathTo(task) } as const;
    return (await this.#client.ask('the newest record of a task', request)).messages[0];
  }

  /** Returns the sequence up to which all records were read. */
  async *#read(task: string, from: number, upTo?: number): AsyncGenerator<StoredFacts, number> {
    let tail = upTo;
    for (let next: number | undefined = from; next !== undefined; ) {
      const request = { op: 'read', task, from: next, ...(tail !== undefined && { upTo: tail }), ...this.#pathTo(task) } as const;
      const { messages, end } = await this.#client.ask('records of a task', request);
      for (const message of messages) {
        const record = decodeFacts(message.data, task);
        if (record) yield storedOf(message, record);
        else this.#client.connection.onEvent({ type: 'undecodable', where: 'facts' });
      }
      tail ??= end.tail;
      next = end.next;
    }
    return tail ?? 0;
  }

  async #isLost(task: string, seq: number, id: string | undefined): Promise<boolean> {
    const request = { op: 'lost', task, seq, ...(id !== undefined && { id }) } as const;
    return (await this.#client.ask('a record of the log', request)).end.isLost === true;
  }

  #pathTo(task: string): { by?: readonly string[] } {
    const by = this.#paths.get(task);
    return by === undefined ? {} : { by };
  }

  #source(task: string, after: FollowStart): FollowSource {
    const { connection } = this.#client;
    let followed: Followed | undefined;
    const onUndecodable = () => connection.onEvent({ type: 'undecodable', where: 'facts' });
    return {
      read: from => this.#read(task, from),
      tail: async () => tailOf((await this.#newest(task)) ?? null, task),
      isLost: (seq, id) => this.#isLost(task, seq, id),
      pushTail: (onTail, onLost) => followed?.watch({ onTail, onLost }) ?? (() => {}),
      subscribe: async (onLive, onReconnect) => {
        const isNewest = typeof after === 'object';
        followed = this.#followed.add({
          task,
          after: isNewest ? after.newest : 0,
          skipsText: isNewest && after.skipsText === true,
          onLive,
          onMissed: onReconnect,
          toLive: (msg, textAfter) => JetStreamLive.of(msg, task, { textAfter, onUndecodable }),
        });
        const { isFollowed, leave } = followed;
        const removeListener = connection.onReconnect(onReconnect);
        const unsubscribe = () => {
          removeListener();
          leave();
        };
        // A follower that knows the newest record soon reads the log anyway, unless a live record shows first that it has missed nothing.
        if (isNewest) {
          isFollowed.catch(() => {});
          return unsubscribe;
        }
        try {
          await isFollowed;
        } catch (error) {
          unsubscribe();
          if (!connection.closed.aborted) throw error;
        }
        return unsubscribe;
      },
    };
  }
}

/** The answer has the newest record of each task, up to 1 MiB. */
const TASKS_PER_REQUEST = 256;

function storedOf({ seq, header, storedAt }: AnsweredMessage, record: FactRecord): StoredFacts {
  return { seq, record, ...(storedAt !== undefined && { storedAt }), ...idOf(header), ...originOf(header) };
}

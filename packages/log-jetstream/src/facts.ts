import { takesFastPaths } from '@hopline/a2a';
import { type FactRecord, isTaskId, LOG_PREFIX, liveSubject, logShardFilter, type Owner, tenantTokenOf } from '@hopline/events';
import {
  type AppendOptions,
  type FactLog,
  type FollowOptions,
  type FollowSource,
  type FollowStart,
  follow,
  LogConflict,
  type LogExtent,
  MATCHES_PER_REQUEST_MAX,
  type ReadStart,
  type RecordFacts,
  type RecordMark,
  requireTaskId,
  type StoredFacts,
  TAIL_CHECK_MS,
  type Tail,
  taskOfFactsId,
} from '@hopline/log';
import type { SeqMsgRequest, StoredMsg } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/nats-core';
import { decodeFacts, decodeFactsOnly, encodeFacts, idOf, MESSAGE_ID, originOf } from './codec.ts';
import type { Connection } from './connection.ts';
import { type DirectGets, type NewestMessage, newestOf, type StoredMessage } from './direct-gets.ts';
import type { HistoryMessage, HistoryReader } from './history-reader.ts';
import { JetStreamLive } from './live-record.ts';
import { headersOf, storedHeadersOf } from './message-headers.ts';
import { newestFactsOf, tailOf } from './newest-facts.ts';
import type { Publisher } from './publisher.ts';
import { RecordChecks } from './record-checks.ts';
import { readExtents } from './retention.ts';
import { retry } from './retry.ts';
import { TailWatch } from './tail-watch.ts';
import { TaskSubjects } from './task-subjects.ts';
import type { Party } from './turn-queue.ts';

/**
 * Bytes that the server stores for a record in addition to payload, subject and id: its own fields, and the headers with two copies of a
 * trace.
 */
const RECORD_OVERHEAD_BYTES = 104;
const TRACE_BYTES = 148;
/** Time for one check of the newest record. A follower checks it again after the next quiet time. */
const TAIL_MS_MAX = 8_000;

/** `isCompact`: records are stored without the members that repeat others (COMPACT_VERSION). */
type JetStreamFactsOptions = {
  isCompact: boolean;
  history: HistoryReader;
  directGets: DirectGets;
  follow: FollowOptions;
};

/** Number of tasks that are read at once if the server answers a request with only one record. */
const READS_AT_ONCE_MAX = 8;

export class JetStreamFacts implements FactLog {
  readonly #connection: Connection;
  readonly #publisher: Publisher;
  readonly #isCompact: boolean;
  readonly #directGets: DirectGets;
  readonly subjects: TaskSubjects;
  readonly #history: HistoryReader;
  readonly #checks: RecordChecks;
  readonly #follow: FollowOptions;
  /** One entry for each stream that was followed. */
  readonly #tails = new Map<string, TailWatch>();
  /** The server has accepted a task subscription of this user. */
  #mayFollow = false;

  constructor(connection: Connection, publisher: Publisher, options: JetStreamFactsOptions) {
    this.#connection = connection;
    this.#publisher = publisher;
    this.#isCompact = options.isCompact;
    this.#directGets = options.directGets;
    this.subjects = new TaskSubjects(connection.names, () => connection.layouts);
    this.#history = options.history;
    this.#checks = new RecordChecks({
      newest: taskIds => this.#idsOfNewest(taskIds),
      isLost: ({ seq, id }) =>
        this.#isLost(this.streamOf(taskOfFactsId(id)), seq, stored => idOf(storedHeadersOf(stored)).id === id),
    });
    this.#follow = options.follow;
  }

  async append(record: FactRecord, options: AppendOptions): Promise<{ seq: number; bytes: number }> {
    const { taskId } = record.aggregate;
    this.#connection.requireKnownLayout(taskId);
    const subject = this.subjects.ofFacts(taskId);
    const payload = encodeFacts(record, this.#isCompact);
    const headers = RECORD_OVERHEAD_BYTES + options.id.length + (options.trace?.traceparent === undefined ? 0 : TRACE_BYTES);
    const bytes = payload.length + subject.length + headers;
    try {
      const { seq } = await this.#publisher.publish(subject, payload, options);
      return { seq, bytes };
    } catch (error) {
      if (!(error instanceof LogConflict)) throw error;
      // Servers check the sequence before the id (2.15.2; R3 before 2.11). So a retry after a lost ack conflicts with the record that the
      // first try stored after `expected`.
      const next = await this.#next(this.streamOf(taskId), subject, options.expected + 1);
      if (next?.header?.get(MESSAGE_ID) === options.id) return { seq: next.seq, bytes };
      throw error;
    }
  }

  async last(taskId: string): Promise<StoredFacts | undefined> {
    requireTaskId(taskId);
    const newest = await this.#newest(this.streamOf(taskId), this.subjects.ofFacts(taskId));
    return newest ? newestFactsOf(newest, taskId, () => this.#read(taskId, 1)) : undefined;
  }

  async lastOfEach(taskIds: readonly string[]): Promise<Map<string, StoredFacts>> {
    const found = new Map<string, StoredFacts>();
    const left: string[] = [];
    await this.#newestOfEach(taskIds, (taskId, newest) => {
      const record = newest && decodeFacts(newest.data, taskId);
      if (newest === undefined || record === undefined) left.push(taskId);
      else {
        const headers = headersOf(newest.msg);
        found.set(taskId, { seq: newest.seq, record, ...idOf(headers), ...originOf(headers) });
      }
    });
    for (let at = 0; at < left.length; at += READS_AT_ONCE_MAX) {
      const some = left.slice(at, at + READS_AT_ONCE_MAX);
      const read = await Promise.all(some.map(taskId => this.last(taskId)));
      for (const [n, last] of read.entries()) if (last !== undefined) found.set(some[n]!, last);
    }
    return found;
  }

  /**
   * Reads the newest records of tasks, many in one request. `onNewest` is called once for each task that has one, and with undefined for
   * each task that must be read separately.
   */
  async #newestOfEach(
    taskIds: readonly string[],
    onNewest: (taskId: string, newest: StoredMessage | undefined) => void,
  ): Promise<void> {
    for (const taskId of taskIds) requireTaskId(taskId);
    const filter = this.#connection.names.subject(`${LOG_PREFIX}.>`);
    const read = async (stream: string, ids: readonly string[]) => {
      for (let at = 0; at < ids.length; at += MATCHES_PER_REQUEST_MAX) {
        const some = ids.slice(at, at + MATCHES_PER_REQUEST_MAX);
        const newest = await this.#directGets.newest(
          stream,
          filter,
          some.map(taskId => this.subjects.ofFacts(taskId)),
        );
        if (newest === undefined) for (const taskId of some) onNewest(taskId, undefined);
        for (const message of newest ?? []) onNewest(message.subject.slice(message.subject.lastIndexOf('.') + 1), message);
      }
    };
    const byStream = Map.groupBy(taskIds, taskId => this.streamOf(taskId));
    await Promise.all([...byStream].map(([stream, ids]) => read(stream, ids)));
  }

  /** Sequences and ids of the newest records of tasks, as far as one request for many tasks finds them. */
  async #idsOfNewest(taskIds: readonly string[]): Promise<Map<string, RecordMark>> {
    const found = new Map<string, RecordMark>();
    await this.#newestOfEach(taskIds, (taskId, newest) => {
      const { id } = idOf(newest && headersOf(newest.msg));
      if (newest !== undefined && id !== undefined) found.set(taskId, { seq: newest.seq, id });
    });
    return found;
  }

  read(taskId: string, from: number, owner?: Owner, upTo?: number): AsyncIterable<StoredFacts> {
    requireTaskId(taskId);
    const party = tenantTokenOf(owner);
    return upTo === undefined ? this.#read(taskId, from, party) : this.#readUpTo(taskId, from, upTo, party);
  }

  async follow(taskId: string, after: FollowStart, signal: AbortSignal, owner?: Owner): Promise<AsyncIterable<StoredFacts>> {
    requireTaskId(taskId);
    const ended = AbortSignal.any([signal, this.#connection.closed]);
    return follow(this.#source(taskId, after, ended, tenantTokenOf(owner)), after, ended, this.#follow);
  }

  async *readStoredShard(shard: number, start: ReadStart): AsyncGenerator<readonly RecordFacts[], void> {
    const { names } = this.#connection;
    const filter = names.subject(logShardFilter(shard));
    const stream = names.factsStreamOf(shard);
    const tail = (await this.#newest(stream, filter))?.seq ?? 0;
    const prefix = names.subject(LOG_PREFIX).length + 1;
    const from = 'seq' in start ? start.seq : new Date(start.sinceMs);
    for await (const batch of this.#history.readBatches(stream, filter, from, tail)) {
      const records: RecordFacts[] = [];
      let last: Msg | undefined;
      for (const { msg, seq, storedAt } of batch) {
        const { subject } = msg;
        const taskId = subject.slice(subject.indexOf('.', prefix) + 1);
        if (!isTaskId(taskId)) continue;
        const facts = decodeFactsOnly(msg.data, taskId);
        if (facts) {
          records.push({ seq, taskId, facts, storedAt });
          last = msg;
        } else this.#connection.onEvent({ type: 'undecodable', where: 'facts' });
      }
      if (last !== undefined) records.push({ ...records.pop()!, ...idOf(headersOf(last)) });
      yield records;
    }
  }

  extent(): Promise<LogExtent> {
    return readExtents(this.#connection, this.#connection.names.factsStreams, this.#connection.layouts);
  }

  isLost(mark: RecordMark): Promise<boolean> {
    return this.#checks.isLost(mark);
  }

  async #isLost(stream: string, seq: number, isSame: (stored: StoredMsg) => boolean): Promise<boolean> {
    const { jsm, leaders } = this.#connection;
    const get = async () => {
      const stored = await jsm.streams.getMessage(stream, { seq });
      return stored === null ? seq > (await jsm.streams.info(stream)).state.last_seq : !isSame(stored);
    };
    return retry(this.#connection, 'a record of the log', () => leaders.read(stream, get), { readsFrom: stream });
  }

  async *#read(taskId: string, from: number, party?: Party): AsyncGenerator<StoredFacts, number> {
    const subject = this.subjects.ofFacts(taskId);
    const stream = this.streamOf(taskId);
    const end = yield* this.#toRecords(taskId, this.#history.readToEnd(stream, subject, from, party));
    if (end !== undefined) return end;
    const tail = (await this.#newest(stream, subject))?.seq ?? 0;
    if (tail < from) return tail;
    yield* this.#readUpTo(taskId, from, tail, party);
    return tail;
  }

  #readUpTo(taskId: string, from: number, tail: number, party: Party): AsyncGenerator<StoredFacts, void> {
    return this.#toRecords(taskId, this.#history.read(this.streamOf(taskId), this.subjects.ofFacts(taskId), from, tail, party));
  }

  async *#toRecords<R>(taskId: string, messages: AsyncGenerator<HistoryMessage, R>): AsyncGenerator<StoredFacts, R> {
    try {
      for (let next = await messages.next(); ; next = await messages.next()) {
        if (next.done === true) return next.value;
        const { msg, seq, storedAt } = next.value;
        const record = this.#decode(msg, taskId);
        const headers = headersOf(msg);
        if (record) yield { seq, record, storedAt, bytes: msg.data.length, ...idOf(headers), ...originOf(headers) };
      }
    } finally {
      await messages.return(undefined as R);
    }
  }

  #newest(stream: string, subject: string): Promise<NewestMessage | null> {
    return this.#directGets.newestFromLeader(stream, subject);
  }

  async #next(stream: string, subject: string, from: number): Promise<NewestMessage | null> {
    // Servers support this since 2.9, but the type lacks it.
    const query = { next_by_subj: subject, seq: from } as SeqMsgRequest;
    const { jsm } = this.#connection;
    const get = () => jsm.streams.getMessage(stream, query);
    return newestOf(await retry(this.#connection, 'a record of a task', get, { readsFrom: stream }));
  }

  /** The source of a task's follower, without its live records. */
  sourceOf(taskId: string, party?: Party): Omit<FollowSource, 'subscribe'> {
    const { jsm } = this.#connection;
    const subject = this.subjects.ofFacts(taskId);
    const stream = this.streamOf(taskId);
    const tail = () => jsm.direct.getMessage(stream, { last_by_subj: subject });
    const options = { timeoutMs: TAIL_MS_MAX, readsFrom: stream };
    return {
      read: from => this.#read(taskId, from, party),
      tail: async () => tailOf(await retry(this.#connection, `reading ${stream}`, tail, options), taskId),
      isLost: (seq, id) =>
        this.#isLost(stream, seq, stored =>
          id === undefined ? stored.subject === subject : idOf(storedHeadersOf(stored)).id === id,
        ),
      ...(takesFastPaths() && {
        pushTail: (onTail: (tail: Tail) => void, onLost: () => void) => this.#tailsOf(stream).watch(subject, onTail, onLost),
      }),
    };
  }

  /**
   * Calls `onLive` with the task's live records until the returned function is called. When this returns, the server may not have the
   * subscription yet.
   */
  onLive(taskId: string, onLive: (live: JetStreamLive) => void, onDenied: () => void): () => void {
    const onUndecodable = () => this.#connection.onEvent({ type: 'undecodable', where: 'facts' });
    const onMsg = (msg: Msg) => {
      const live = JetStreamLive.of(msg, taskId, { onUndecodable });
      if (live) onLive(live);
    };
    const subscription = this.#connection.subscribe(this.#liveSubjectOf(taskId), onMsg, onDenied);
    return () => subscription.unsubscribe();
  }

  #liveSubjectOf(taskId: string): string {
    return this.#connection.names.subject(liveSubject(taskId, this.#connection.layouts));
  }

  #source(taskId: string, after: FollowStart, signal: AbortSignal, party: Party): FollowSource {
    const { nc } = this.#connection;
    return {
      ...this.sourceOf(taskId, party),
      subscribe: async (onLive, onReconnect) => {
        let isDenied = false;
        const end = this.onLive(taskId, onLive, () => {
          isDenied = true;
        });
        const removeListener = this.#connection.onReconnect(onReconnect);
        const unsubscribe = () => {
          removeListener();
          end();
        };
        // The follower does not wait for the server's answer. It soon reads the log anyway, unless a live record shows first that it has
        // missed nothing.
        if (this.#mayFollow && typeof after === 'object') return unsubscribe;
        try {
          await retry(this.#connection, 'following a task', () => nc.flush(), { signal });
          if (isDenied) throw this.#connection.denied({ operation: 'subscription', subject: this.#liveSubjectOf(taskId) });
          this.#mayFollow = true;
        } catch (error) {
          unsubscribe();
          if (!signal.aborted) throw error;
        }
        return unsubscribe;
      },
    };
  }

  /** The stream with the facts of a task. */
  streamOf(taskId: string): string {
    this.#connection.requireKnownLayout(taskId);
    return this.#connection.names.factsStreamOf(this.#connection.layouts.shardOf(taskId));
  }

  #tailsOf(stream: string): TailWatch {
    const found = this.#tails.get(stream);
    if (found !== undefined) return found;
    const sweepMs = (this.#follow.tailCheckMs ?? TAIL_CHECK_MS) / 2;
    const newest = async (subject: string) =>
      tailOf(await this.#newest(stream, subject), subject.slice(subject.lastIndexOf('.') + 1));
    const tails = new TailWatch(this.#connection, { stream, sweepMs, newest });
    this.#tails.set(stream, tails);
    return tails;
  }

  #decode(msg: Msg, taskId: string): FactRecord | undefined {
    const record = decodeFacts(msg.data, taskId);
    if (!record) this.#connection.onEvent({ type: 'undecodable', where: 'facts' });
    return record;
  }
}

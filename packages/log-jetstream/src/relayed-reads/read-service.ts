import { randomUUID } from 'node:crypto';
import { READ_PREFIX, readerSubject, readSubject, WORK_PREFIX } from '@hopline/events';
import {
  type Entry,
  isOwnerFilter,
  type KeyValue,
  type LeaseValue,
  SharedNext,
  type TaskIndexEntry,
  type TaskListValue,
} from '@hopline/log';
import { JetStreamApiError } from '@nats-io/jetstream';
import { type Msg, headers as natsHeaders } from '@nats-io/nats-core';
import { decodeFacts } from '../codec.ts';
import type { Connection } from '../connection.ts';
import { type DirectGets, newestOf } from '../direct-gets.ts';
import type { JetStreamFacts } from '../facts.ts';
import type { HistoryReader } from '../history-reader.ts';
import { LastingSubscription } from '../lasting-subscription.ts';
import { headersOf, storedHeadersOf } from '../message-headers.ts';
import { isStreamNotFound } from '../missing-stream.ts';
import { BUCKETS } from '../names.ts';
import { isTransient, retry } from '../retry.ts';
import { inboxOf } from '../users.ts';
import { AnswerBudget } from './answer-budget.ts';
import { ANSWERED, type AnswerEnd, type AnsweredMessage, withAnswer } from './answers.ts';
import { Feeds } from './feeds.ts';
import { ReadRights } from './read-rights.ts';
import { messagesFor, parseReadSubject, parseRequest, RECORDS_PER_ANSWER_MAX, type ReadRequest } from './requests.ts';

const BYTES_PER_ANSWER_MAX = 1024 * 1024;
/** An answer with more messages is on its way until NATS has received all of them. */
const FLUSHED_MESSAGES_MIN = 16;
/** Half of the largest message that NATS accepts by default. */
const JSON_PART_BYTES = 512 * 1024;
/**
 * Requests of one agent that a relay handles at once, enough for eight processes. The relay drops the others, which the agent sends again,
 * so a flood of requests causes no reads.
 */
const REQUESTS_AT_ONCE_MAX = 256;
/** Shorter than the time after which an agent repeats a request. */
const GOES_ON_MS = 1_000;
/** Relays that share the requests of agents. */
const READERS = 'readers';

type ReadServiceDeps = {
  connection: Connection;
  directGets: DirectGets;
  history: HistoryReader;
  facts: JetStreamFacts;
  tasks: KeyValue<TaskIndexEntry>;
  taskLists: KeyValue<TaskListValue>;
  leases: KeyValue<LeaseValue>;
  agentTasksMax: number;
};

/** Reads the log for sub-agents. Any relay may answer a request, but a feed belongs to the relay that opened it. */
export class ReadService {
  readonly #deps: ReadServiceDeps;
  readonly #rights: ReadRights;
  readonly #feeds: Feeds;
  readonly #leases: SharedNext<Entry<LeaseValue>[]>;
  readonly #prefix: string;
  /** Requests in progress by agent, kept until the budget of the agent is full again. */
  readonly #open = new Map<string, { count: number; budget: AnswerBudget }>();

  constructor(deps: ReadServiceDeps) {
    this.#deps = deps;
    const { connection, facts } = deps;
    this.#rights = new ReadRights(facts);
    this.#leases = new SharedNext(() => deps.leases.match(['shard.*']));
    this.#feeds = new Feeds({ connection, facts, rights: this.#rights, reader: randomUUID(), agentTasksMax: deps.agentTasksMax });
    this.#prefix = `${connection.names.subject(READ_PREFIX)}.`;
    const onMsg = (msg: Msg) => this.#onMsg(msg);
    new LastingSubscription(connection, connection.names.subject(readSubject('*')), { onMsg, queue: READERS });
    new LastingSubscription(connection, connection.names.subject(readerSubject('*', this.#feeds.reader)), { onMsg });
  }

  /** Ends the feeds, so that their agents open others without delay. */
  close(): void {
    this.#feeds.close();
  }

  #onMsg(msg: Msg): void {
    const origin = parseReadSubject(msg.subject, this.#prefix);
    const request = parseRequest(msg.string());
    if (origin === undefined || request === undefined) return;
    const { agent } = origin;
    const inbox = `${inboxOf(`agent.${agent}`, this.#deps.connection.names)}.`;
    // NATS does not check to whom an answer goes.
    const isOwnInbox = (subject: string | undefined) => subject?.startsWith(inbox) === true && !/[*>\s]/.test(subject);
    if ('feed' in request && !isOwnInbox(request.feed)) return;
    if (!isOwnInbox(msg.reply)) {
      if (request.op === 'keep' || request.op === 'leave') this.#feeds.handle(agent, request);
      return;
    }
    const open = this.#open.get(agent) ?? { count: 0, budget: new AnswerBudget() };
    if (open.count >= REQUESTS_AT_ONCE_MAX) return;
    open.count += 1;
    this.#open.set(agent, open);
    void this.#answer(new Answer(this.#deps.connection, msg.reply!), agent, request, open.budget).finally(() => {
      open.count -= 1;
      if (open.count === 0) setTimeout(() => open.count === 0 && this.#open.delete(agent), open.budget.fullInMs).unref();
    });
  }

  async #answer(answer: Answer, agent: string, request: ReadRequest, budget: AnswerBudget): Promise<void> {
    const timer = setInterval(() => answer.goesOn(), GOES_ON_MS);
    try {
      await budget.run(messagesFor(request, this.#deps.connection.layouts.shards), async () => {
        await this.#read(answer, agent, request);
        if (answer.count > FLUSHED_MESSAGES_MIN) await this.#deps.connection.nc.flush().catch(() => {});
        return answer.count + 1;
      });
    } catch (error) {
      // A missing stream may be created later, but the agent must know that it is missing.
      const isFinal = error instanceof JetStreamApiError && (isStreamNotFound(error) || !isTransient(error));
      if (isFinal) answer.end({ apiError: error.apiError() });
      else answer.end({ error: error instanceof Error ? error.message : String(error) });
    } finally {
      clearInterval(timer);
    }
  }

  async #read(answer: Answer, agent: string, request: ReadRequest): Promise<void> {
    switch (request.op) {
      case 'newest':
        return this.#newest(answer, agent, request);
      case 'newest-of':
        return this.#newestOf(answer, agent, request.tasks);
      case 'read':
        return this.#records(answer, agent, request);
      case 'lost': {
        const { task, seq, id } = request;
        const mayRead = await this.#rights.mayRead(agent, task);
        return answer.end({ isLost: mayRead && (await this.#deps.facts.sourceOf(task).isLost(seq, id)) });
      }
      case 'input':
        return this.#input(answer, agent, request);
      case 'index': {
        const entry = await this.#deps.tasks.get(request.task);
        if (entry?.value.role === `agent.${agent}`) answer.value(entry.revision, entry.value, request.task);
        return answer.end({});
      }
      case 'lists': {
        const filters = request.filters.filter(filter => isOwnerFilter(filter, `agent.${agent}`, request.owner));
        for (const { key, value, revision } of await this.#deps.taskLists.match(filters)) answer.value(revision, value, key);
        return answer.end({});
      }
      case 'count': {
        const isOwn = isOwnerFilter(request.filter, `agent.${agent}`, request.owner);
        return answer.end({ count: isOwn ? await this.#deps.taskLists.count(request.filter) : 0 });
      }
      case 'listed': {
        // The other members of a lease name tasks.
        for (const { key, value, revision } of await this.#leases.next())
          answer.value(revision, { owner: value.owner, ...(value.listed && { listed: true }) }, key);
        return answer.end({});
      }
      case 'entry':
        return this.#entry(answer, agent, request);
      case 'stream':
        return this.#stream(answer, agent, request);
      case 'consumer':
        answer.json(await this.#deps.connection.streams.consumer(`agent.${agent}`, request.queue));
        return answer.end({});
      case 'ensure-consumer':
        await this.#deps.connection.streams.ensureConsumer(`agent.${agent}`, request.queue, request);
        return answer.end({});
      default:
        return answer.end(await this.#feeds.handle(agent, request));
    }
  }

  async #newest(answer: Answer, agent: string, { task, by }: Extract<ReadRequest, { op: 'newest' }>): Promise<void> {
    const { facts, directGets } = this.#deps;
    const newest = await directGets.newestFromLeader(facts.streamOf(task), facts.subjects.ofFacts(task));
    if (newest === null) return answer.end({});
    const record = this.#rights.isKnown(agent, task) ? undefined : decodeFacts(newest.data, task);
    const known = record && { seq: newest.seq, record };
    if (!(await this.#rights.mayRead(agent, task, { ...(by && { by }), ...(known && { newest: known }) }))) return answer.end({});
    answer.only(newest);
  }

  async #newestOf(answer: Answer, agent: string, tasks: readonly string[]): Promise<void> {
    const { directGets, facts } = this.#deps;
    const found = await facts.lastOfEach(tasks);
    const permitted = await Promise.all(
      [...found].map(async ([task, newest]) => ((await this.#rights.mayRead(agent, task, { newest })) ? task : [])),
    );
    const read = async (task: string) => {
      const newest = await directGets.newestFromLeader(facts.streamOf(task), facts.subjects.ofFacts(task));
      if (newest !== null) answer.message({ seq: newest.seq, data: newest.data, header: newest.header, task });
    };
    await Promise.all(permitted.flat().map(read));
    answer.end({});
  }

  async #records(answer: Answer, agent: string, { task, by, from, upTo }: Extract<ReadRequest, { op: 'read' }>): Promise<void> {
    if (!(await this.#rights.mayRead(agent, task, by && { by }))) return answer.end({ tail: 0 });
    const { facts, directGets, history } = this.#deps;
    const [stream, subject] = [facts.streamOf(task), facts.subjects.ofFacts(task)];
    const tail = upTo ?? (await directGets.newestFromLeader(stream, subject))?.seq ?? 0;
    let bytes = 0;
    for await (const { msg, seq, storedAt } of history.read(stream, subject, from, tail, agent)) {
      if (answer.count >= RECORDS_PER_ANSWER_MAX || bytes >= BYTES_PER_ANSWER_MAX) return answer.end({ tail, next: seq });
      answer.message({ seq, data: msg.data, header: headersOf(msg), storedAt });
      bytes += msg.data.length;
    }
    answer.end({ tail });
  }

  /** An entry that belongs to the agent itself, in the bucket of message ids or of contexts. */
  async #entry(answer: Answer, agent: string, { bucket, key }: Extract<ReadRequest, { op: 'entry' }>): Promise<void> {
    const own = { agents: `${agent}.`, requeues: `agent.${agent}.`, messageIds: '', contexts: '' }[bucket];
    if (!key.startsWith(own)) return answer.end({});
    const { connection } = this.#deps;
    const name = connection.names.bucket(BUCKETS[bucket]);
    const get = () => connection.jsm.streams.getMessage(`KV_${name}`, { last_by_subj: `$KV.${name}.${key}` });
    const found = newestOf(await retry(connection, `an entry of ${name}`, get));
    if (found === null) return answer.end({});
    answer.only(found);
  }

  /** The state of a stream. Only subjects below those of the agent's role are listed, because the others name other agents' tasks. */
  async #stream(answer: Answer, agent: string, { stream, filter }: Extract<ReadRequest, { op: 'stream' }>): Promise<void> {
    const { names, streams } = this.#deps.connection;
    const [agents, requeues] = [names.bucket(BUCKETS.agents), names.bucket(BUCKETS.requeues)];
    const own: Record<string, string> = {
      [names.workStream]: names.subject(`${WORK_PREFIX}.agent.${agent}.`),
      [`KV_${agents}`]: `$KV.${agents}.${agent}.`,
      [`KV_${requeues}`]: `$KV.${requeues}.agent.${agent}.`,
    };
    const isPermitted = filter === undefined || (own[stream] !== undefined && filter.startsWith(own[stream]));
    if (!names.allStreams().includes(stream) || !isPermitted)
      return answer.end({ error: `agent ${agent} may not ask for ${stream} ${filter ?? ''}` });
    answer.json(await streams.info(stream, filter));
    answer.end({});
  }

  /** An input that the agent itself has written. */
  async #input(answer: Answer, agent: string, { task, seq }: Extract<ReadRequest, { op: 'input' }>): Promise<void> {
    const { connection, facts } = this.#deps;
    const { jsm, names, layouts } = connection;
    const stream = names.inputsStreamOf(layouts.shardOf(task));
    const get = () => jsm.streams.getMessage(stream, { seq });
    const found = await retry(connection, 'an input of a task', get, { readsFrom: stream });
    if (found?.subject !== facts.subjects.ofInputs(task, `agent.${agent}`)) return answer.end({});
    answer.only({ seq, data: found.data, header: storedHeadersOf(found) });
  }
}

/** The messages of one answer. */
class Answer {
  readonly #connection: Connection;
  readonly #reply: string;
  count = 0;

  constructor(connection: Connection, reply: string) {
    this.#connection = connection;
    this.#reply = reply;
  }

  message(message: AnsweredMessage): void {
    this.count += 1;
    this.#connection.sendBytes(this.#reply, message.data, withAnswer(message));
  }

  /** An entry of a bucket. `key`: instead of the task. */
  value(seq: number, value: unknown, key: string): void {
    this.message({ seq, data: Buffer.from(JSON.stringify(value)), header: undefined, task: key });
  }

  /**
   * An answer of the JetStream API, sent in parts: a message of the API may be larger than `max_payload`, whereas a message of a client may
   * not.
   */
  json(value: object): void {
    const bytes = Buffer.from(JSON.stringify(value));
    for (let at = 0; at < bytes.length; at += JSON_PART_BYTES)
      this.message({ seq: 1, data: bytes.subarray(at, at + JSON_PART_BYTES), header: undefined });
  }

  /** A message that is the whole answer. */
  only(message: AnsweredMessage): void {
    const headers = withAnswer(message);
    headers.set(ANSWERED, '1');
    this.#connection.sendBytes(this.#reply, message.data, headers);
  }

  /**
   * The relay is still reading. Without this message the agent would ask other relays for the same, and busy relays would read everything
   * several times.
   */
  goesOn(): void {
    this.#connection.send(this.#reply, '');
  }

  end(end: AnswerEnd): void {
    const headers = natsHeaders();
    headers.set(ANSWERED, `${this.count}`);
    this.#connection.sendBytes(this.#reply, Buffer.from(JSON.stringify(end)), headers);
  }
}

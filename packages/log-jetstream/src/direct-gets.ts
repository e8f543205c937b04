import { LogDenied, LogUnavailable } from '@hopline/log';
import type { StoredMsg } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/nats-core';
import { AnswerInbox, type OpenRequest, transient } from './answer-inbox.ts';
import { hasBatchGets } from './capabilities.ts';
import { type Connection, REQUEST_TIMEOUT_MS } from './connection.ts';
import { type Headers, headersOf, storedHeadersOf } from './message-headers.ts';
import { STREAM_MISSING } from './missing-stream.ts';
import { pause, retry } from './retry.ts';

/** Wait before a replica that lags behind the leader is asked again. Another one may answer. */
export const LAG_RETRY_MS = 10;
/** A replica that still lags is asked again after a wait of this share of the time so far, because each answer may have megabytes. */
const LAG_RETRY_SHARE = 0.25;
const LAG_RETRY_MS_MAX = 1_000;
/** Number of subjects for which the leader is asked, if a replica returns a message for none of them. */
const EMPTY_CHECKS_MAX = 4;
/**
 * Bytes of one answer with the newest messages of many subjects. It exceeds the entries of a list, because an entry that is replaced
 * between two answers is in neither of them.
 */
const NEWEST_BYTES_MAX = 8 * 1024 * 1024;
const NO_MESSAGES = 404;
const TOO_MANY = 413;
const END = 204;

/** A stored message as a direct get delivers it. */
export type StoredMessage = { subject: string; seq: number; data: Uint8Array; msg: Msg };

/** The newest message of a subject, from a direct get or from the leader. */
export type NewestMessage = { seq: number; data: Uint8Array; header: Headers | undefined };

export function newestOf(stored: StoredMsg | null): NewestMessage | null {
  return stored && { seq: stored.seq, data: stored.data, header: storedHeadersOf(stored) };
}

type Answer = { messages: StoredMessage[]; pending: number; upTo: number } | 'too many';
/** `one`: the first message is the whole answer. `series`: messages of one subject, of which there may be none. */
type Asked = 'one' | 'series' | 'newest';
type State = { messages: StoredMessage[]; asked: Asked };

/**
 * Reads stored messages with one request and without a consumer (direct gets, ADR-31 of NATS): the newest message of a subject and, on
 * servers since 2.11, the newest messages of many subjects, or a series of messages of one subject. Any replica may answer, so `newest`
 * repeats a request to a replicated stream until the answer is as new as the leader's state at the time of the call.
 */
export class DirectGets {
  readonly #connection: Connection;
  readonly #answers: AnswerInbox<State, Answer>;
  /** Streams that this user may not read by direct gets, because its permissions are those of a version without them. */
  readonly #denied = new Set<string>();

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#answers = new AnswerInbox(connection, onMsg);
  }

  /** Whether the server can answer one request with several messages. */
  get hasBatches(): boolean {
    return hasBatchGets(this.#connection.nc.info?.version ?? '');
  }

  /**
   * In order of sequence. Undefined when more subjects match than the server answers, and on servers before 2.11. `all`: a filter that
   * matches all subjects of the stream.
   */
  async newest(stream: string, all: string, subjects: readonly string[]): Promise<StoredMessage[] | undefined> {
    if (!this.hasBatches) return undefined;
    if (subjects.length === 0) return [];
    const connection = this.#connection;
    const seqOf = (subject: string) => async () => (await this.#askLeader(stream, subject))?.seq ?? 0;
    const startedMs = performance.now();
    const leader = connection.replicas > 1 ? this.#retry(stream, seqOf(all)) : 0;
    const [leaderSeq, first] = await Promise.all([leader, this.#retry(stream, onPart => this.#read(stream, subjects, onPart))]);
    let answer = first;
    while (answer !== 'too many' && answer.upTo < leaderSeq) {
      // An empty answer does not name the newest sequence of its replica.
      if (answer.messages.length === 0) {
        const seqs = await Promise.all(subjects.slice(0, EMPTY_CHECKS_MAX).map(subject => this.#retry(stream, seqOf(subject))));
        if (seqs.every(seq => seq === 0)) break;
      }
      const waitedMs = performance.now() - startedMs;
      if (waitedMs >= REQUEST_TIMEOUT_MS)
        throw new LogUnavailable(`reading ${stream}: the replica that answers lacks the newest records`);
      const pauseMs = Math.min(LAG_RETRY_MS_MAX, Math.max(LAG_RETRY_MS, waitedMs * LAG_RETRY_SHARE));
      await pause(connection, pauseMs, connection.closed);
      answer = await this.#retry(stream, onPart => this.#read(stream, subjects, onPart));
    }
    return answer === 'too many' ? undefined : answer.messages;
  }

  /**
   * The newest message of one subject, as the leader of the stream has it; null if it has none. A direct get costs less, because its answer
   * is not JSON, but a lagging replica may answer it. So only a stream without replicas is read with one.
   */
  async newestFromLeader(stream: string, subject: string): Promise<NewestMessage | null> {
    const connection = this.#connection;
    if (connection.replicas === 1 && !this.#denied.has(stream)) {
      try {
        const answer = await this.#retry(stream, () => this.#request(stream, { last_by_subj: subject }, 'one'));
        const found = answer === 'too many' ? undefined : answer.messages[0];
        return found === undefined ? null : { seq: found.seq, data: found.data, header: headersOf(found.msg) };
      } catch (error) {
        if (!(error instanceof LogDenied)) throw error;
        this.#denied.add(stream);
      }
    }
    return this.#retry(stream, () => this.#askLeader(stream, subject));
  }

  /** No server answers a direct get of a stream that does not exist, nor of one without a leader. */
  async #retry<T>(stream: string, request: (onPart: () => void) => Promise<T>): Promise<T> {
    try {
      return await retry(this.#connection, `reading ${stream}`, request, { readsFrom: stream });
    } catch (error) {
      const isUnexplained = error instanceof LogUnavailable && !(error instanceof LogDenied) && this.#connection.connected;
      if (!isUnexplained || !(await this.#connection.isMissing(stream))) throw error;
      throw new LogUnavailable(`reading ${stream}: ${STREAM_MISSING}`, { cause: error });
    }
  }

  /** MSG.GET is answered by the leader. */
  async #askLeader(stream: string, subject: string): Promise<NewestMessage | null> {
    const { jsm, leaders, reads } = this.#connection;
    const get = () => jsm.streams.getMessage(stream, { last_by_subj: subject });
    const newest = newestOf(await leaders.read(stream, get));
    reads.received(newest?.data.length ?? 0);
    return newest;
  }

  /**
   * Messages of one subject from a sequence on, at most `recordsMax` of them and about `bytesMax` bytes; `isLast`: no message follows them.
   * A lagging replica returns fewer. Rejects with LogDenied if the user may not read the stream in this way.
   */
  async following(
    stream: string,
    { subject, from, recordsMax, bytesMax }: { subject: string; from: number; recordsMax: number; bytesMax: number },
  ): Promise<{ messages: StoredMessage[]; isLast: boolean }> {
    const query = { next_by_subj: subject, seq: Math.max(1, from), batch: recordsMax, max_bytes: bytesMax };
    const answer = await this.#retry(stream, onPart => this.#request(stream, query, 'series', onPart));
    return answer === 'too many' ? { messages: [], isLast: true } : { messages: answer.messages, isLast: answer.pending === 0 };
  }

  /** Pages of one answer, which the server ends early when it has many bytes. */
  async #read(stream: string, subjects: readonly string[], onPart: () => void): Promise<Exclude<Answer, string> | 'too many'> {
    const messages: StoredMessage[] = [];
    for (let upTo = 0; ; ) {
      const last = messages.at(-1)?.seq;
      const query = {
        multi_last: subjects,
        max_bytes: NEWEST_BYTES_MAX,
        ...(last !== undefined && { seq: last + 1, up_to_seq: upTo }),
      };
      const page = await this.#request(stream, query, 'newest', onPart);
      if (page === 'too many') return page;
      messages.push(...page.messages);
      upTo ||= page.upTo;
      if (page.pending === 0 || page.messages.length === 0) return { messages, pending: 0, upTo };
    }
  }

  async #request(stream: string, query: object, asked: Asked, onPart?: () => void): Promise<Answer> {
    const state: State = { messages: [], asked };
    const answer = await this.#answers.request(`$JS.API.DIRECT.GET.${stream}`, query, state, { silence: 'no answer', onPart });
    this.#connection.reads.received(state.messages.reduce((bytes, { data }) => bytes + data.length, 0));
    return answer;
  }
}

function onMsg({ state: { messages, asked }, end, fail }: OpenRequest<State, Answer>, msg: Msg): void {
  const headers = headersOf(msg);
  const number = (name: string) => Number(headers?.get(name) || 0);
  const { code = 0, description = '' } = headers ?? {};
  // Each message of a series names the previous one, and the end names the last one. A route between two servers may lose some of them.
  const isNamed = asked !== 'one' && (code === 0 || code === END);
  const isBroken = isNamed && number('Nats-Last-Sequence') !== (messages.at(-1)?.seq ?? 0);
  if (isBroken) fail(transient('a message was lost'));
  else if (code === 0) {
    messages.push({ subject: headers?.get('Nats-Subject') ?? '', seq: number('Nats-Sequence'), data: msg.data, msg });
    if (asked === 'one') end({ messages, pending: 0, upTo: 0 });
  } else if (code === NO_MESSAGES && asked === 'newest' && description !== 'No Results')
    fail(transient('a message was replaced during the read'));
  else if (code !== END && code !== TOO_MANY && code !== NO_MESSAGES) fail(transient(`${code} ${description}`));
  else {
    const rest = { messages, pending: number('Nats-Num-Pending'), upTo: number('Nats-UpTo-Sequence') };
    end(code === TOO_MANY ? 'too many' : rest);
  }
}

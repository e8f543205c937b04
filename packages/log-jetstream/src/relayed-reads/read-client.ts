import { readerSubject, readSubject } from '@hopline/events';
import { LogUnavailable } from '@hopline/log';
import { type Msg, nuid } from '@nats-io/nats-core';
import type { Connection } from '../connection.ts';
import { retry } from '../retry.ts';
import { PartySlots } from '../turn-queue.ts';
import { ANSWERED, type AnswerEnd, type AnsweredMessage, answeredMessageOf } from './answers.ts';
import type { ReadRequest } from './requests.ts';

/** Time without a part of the answer after which a request is sent again. */
const SILENCE_MS_MAX = 2_000;
/** Requests to any relay that are in progress at once; others wait for their turn. */
const AT_ONCE_MAX = 32;
const NO_RESPONDERS = 503;

export type Answered = { messages: AnsweredMessage[]; end: AnswerEnd };

type OpenRequest = {
  messages: AnsweredMessage[];
  subject: string;
  timer: NodeJS.Timeout;
  resolve: (answer: Answered) => void;
  reject: (error: unknown) => void;
};

/** Requests of one agent to the relays. */
export class ReadClient {
  readonly connection: Connection;
  readonly #agent: string;
  readonly #inbox: string;
  readonly #open = new Map<string, OpenRequest>();
  readonly #slots = new PartySlots(AT_ONCE_MAX, 1);
  #isSubscribed = false;

  constructor(connection: Connection, agent: string) {
    this.connection = connection;
    this.#agent = agent;
    this.#inbox = `${connection.createInbox()}.`;
    connection.onDenied(({ operation, subject }) => {
      if (operation !== 'publish') return;
      for (const [token, open] of this.#open)
        if (open.subject === subject) this.#fail(token, connection.denied({ operation, subject }));
    });
  }

  /** Asks until a relay answers. Rejects with LogUnavailable after 20 s. */
  ask(what: string, request: ReadRequest): Promise<Answered> {
    return this.#slots.run(undefined, () => retry(this.connection, what, () => this.#ask(request, undefined)));
  }

  /** Asks once. Rejects with an error that `retry` repeats. `reader`: the relay that shall answer; absent: any. */
  askOnce(request: ReadRequest, reader?: string): Promise<Answered> {
    return this.#ask(request, reader);
  }

  /** Rejects with LogUnavailable if no relay answers at once. */
  async check(): Promise<void> {
    await this.#ask({ op: 'newest-of', tasks: [] }, undefined).catch(error => {
      throw (
        this.connection.toDenied(error) ?? new LogUnavailable('no relay answers: start a relay of this version', { cause: error })
      );
    });
  }

  /** A request without an answer, to one relay. */
  send(request: ReadRequest, reader: string): void {
    this.connection.send(this.#subjectOf(reader), JSON.stringify(request));
  }

  #subjectOf(reader: string | undefined): string {
    const subject = reader === undefined ? readSubject(this.#agent) : readerSubject(this.#agent, reader);
    return this.connection.names.subject(subject);
  }

  #ask(request: ReadRequest, reader: string | undefined): Promise<Answered> {
    this.#subscribe();
    const { promise, resolve, reject } = Promise.withResolvers<Answered>();
    const token = nuid.next();
    const subject = this.#subjectOf(reader);
    const timer = setTimeout(() => this.#fail(token, transient('no relay has answered')), SILENCE_MS_MAX);
    this.#open.set(token, { messages: [], subject, timer, resolve, reject });
    if (!this.connection.send(subject, JSON.stringify(request), this.#inbox + token))
      this.#fail(token, transient('not connected'));
    return promise;
  }

  #subscribe(): void {
    if (this.#isSubscribed) return;
    this.#isSubscribed = true;
    const inbox = `${this.#inbox}*`;
    this.connection.subscribe(
      inbox,
      msg => this.#onMsg(msg),
      () => {
        this.#isSubscribed = false;
        const denied = this.connection.denied({ operation: 'subscription', subject: inbox });
        for (const token of [...this.#open.keys()]) this.#fail(token, denied);
      },
    );
  }

  #onMsg(msg: Msg): void {
    const token = msg.subject.slice(this.#inbox.length);
    const open = this.#open.get(token);
    if (open === undefined) return;
    open.timer.refresh();
    const message = answeredMessageOf(msg.data, msg.headers);
    if (message !== undefined) open.messages.push(message);
    const answered = msg.headers?.get(ANSWERED);
    const end = answered && message === undefined ? msg.json<AnswerEnd>() : {};
    if (msg.headers?.code === NO_RESPONDERS) this.#fail(token, transient('no relay is there to read'));
    else if (!answered) return;
    else if (Number(answered) !== open.messages.length) this.#fail(token, transient('a message was lost'));
    else if (end.error !== undefined) this.#fail(token, transient(end.error));
    else {
      clearTimeout(open.timer);
      this.#open.delete(token);
      open.resolve({ messages: open.messages, end });
    }
  }

  #fail(token: string, error: unknown): void {
    const open = this.#open.get(token);
    if (open === undefined) return;
    clearTimeout(open.timer);
    this.#open.delete(token);
    open.reject(error);
  }
}

/** An error that `retry` repeats. */
function transient(reason: string): Error {
  return Object.assign(new Error(reason), { name: 'TimeoutError' });
}

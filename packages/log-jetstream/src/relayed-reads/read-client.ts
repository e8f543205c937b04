import { readerSubject, readSubject } from '@hopline/events';
import { LogUnavailable } from '@hopline/log';
import type { Msg } from '@nats-io/nats-core';
import { AnswerInbox, type OpenRequest, transient } from '../answer-inbox.ts';
import type { Connection } from '../connection.ts';
import { headersOf } from '../message-headers.ts';
import { retry } from '../retry.ts';
import { PartySlots } from '../turn-queue.ts';
import { ANSWERED, type AnswerEnd, type AnsweredMessage, answeredMessageOf } from './answers.ts';
import type { ReadRequest } from './requests.ts';

/** Maximum number of requests to relays in progress at once; others wait for their turn. */
const AT_ONCE_MAX = 32;
const NO_RESPONDERS = 503;
const SILENCE_MS_BASE = 2_000;
const SILENCE_MS_MAX = 8_000;

export type Answered = { messages: AnsweredMessage[]; end: AnswerEnd };

/** Requests of one agent to the relays. */
export class ReadClient {
  readonly connection: Connection;
  readonly #agent: string;
  readonly #answers: AnswerInbox<AnsweredMessage[], Answered>;
  readonly #slots = new PartySlots(AT_ONCE_MAX, 1);

  constructor(connection: Connection, agent: string) {
    this.connection = connection;
    this.#agent = agent;
    this.#answers = new AnswerInbox(connection, onMsg);
  }

  /** Asks until a relay answers. Rejects with LogUnavailable after 20 s. */
  ask(what: string, request: ReadRequest): Promise<Answered> {
    return this.#slots.run(undefined, () => retry(this.connection, what, onPart => this.#request(request, { onPart })));
  }

  /**
   * Asks once. Rejects with an error that `retry` repeats. `reader` is the relay that should answer; absent: any relay. `failures`: failed
   * requests for the same answer so far; with each of them, this one may take longer.
   */
  askOnce(
    request: ReadRequest,
    { reader, failures = 0 }: { reader?: string | undefined; failures?: number } = {},
  ): Promise<Answered> {
    return this.#request(request, { reader, silenceMs: Math.min(SILENCE_MS_MAX, SILENCE_MS_BASE * 2 ** failures) });
  }

  #request(
    request: ReadRequest,
    { reader, ...sending }: { reader?: string | undefined; silenceMs?: number; onPart?: () => void },
  ): Promise<Answered> {
    return this.#answers.request(this.#subjectOf(reader), request, [], { silence: 'no relay has answered', ...sending });
  }

  /** Rejects with LogUnavailable if no relay answers at once. */
  async check(): Promise<void> {
    await this.askOnce({ op: 'newest-of', tasks: [] }).catch(error => {
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
}

function onMsg({ state: messages, end, fail }: OpenRequest<AnsweredMessage[], Answered>, msg: Msg): void {
  const headers = headersOf(msg);
  const message = answeredMessageOf(msg.data, headers);
  if (message !== undefined) messages.push(message);
  const answered = headers?.get(ANSWERED);
  const rest = answered && message === undefined ? msg.json<AnswerEnd>() : {};
  if (headers?.code === NO_RESPONDERS) fail(transient('no relay is there to read'));
  else if (!answered) return;
  else if (Number(answered) !== messages.length) fail(transient('a message was lost'));
  else if (rest.error !== undefined) fail(transient(rest.error));
  else end({ messages, end: rest });
}

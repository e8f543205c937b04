import { type Msg, nuid } from '@nats-io/nats-core';
import { type Connection, REQUEST_TIMEOUT_MS } from './connection.ts';

/** A request whose answer is not complete. `state`: what the messages received so far contained. */
export type OpenRequest<State, Answer> = {
  readonly state: State;
  end: (answer: Answer) => void;
  fail: (error: unknown) => void;
};

type Entry<State, Answer> = OpenRequest<State, Answer> & {
  subject: string;
  timer: NodeJS.Timeout;
  onPart?: (() => void) | undefined;
};

/** `onPart`: called for each message of the answer. */
type Sending = { silence: string; silenceMs?: number; onPart?: (() => void) | undefined };

/** Requests whose answers have several messages. One subscription of the process receives them all. */
export class AnswerInbox<State, Answer> {
  readonly #connection: Connection;
  readonly #onMsg: (open: OpenRequest<State, Answer>, msg: Msg) => void;
  readonly #inbox: string;
  readonly #open = new Map<string, Entry<State, Answer>>();
  #isSubscribed = false;

  /** `onMsg` is called for each message of an answer, and ends or fails its request. */
  constructor(connection: Connection, onMsg: (open: OpenRequest<State, Answer>, msg: Msg) => void) {
    this.#connection = connection;
    this.#onMsg = onMsg;
    this.#inbox = `${connection.createInbox()}.`;
    const onClosed = () => {
      for (const open of [...this.#open.values()]) open.fail(transient('the log is closed'));
    };
    connection.closed.addEventListener('abort', onClosed, { once: true });
    connection.onDenied(({ operation, subject }) => {
      if (operation !== 'publish') return;
      for (const open of [...this.#open.values()])
        if (open.subject === subject) open.fail(connection.denied({ operation, subject }));
    });
  }

  /** Sends a request once. Rejects with an error that `retry` repeats, whose reason is `silence` if no message arrives for `silenceMs`. */
  request(
    subject: string,
    request: object,
    state: State,
    { silence, silenceMs = REQUEST_TIMEOUT_MS, onPart }: Sending,
  ): Promise<Answer> {
    this.#subscribe();
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const token = nuid.next();
    const close = () => {
      clearTimeout(open.timer);
      this.#open.delete(token);
    };
    const open: Entry<State, Answer> = {
      state,
      subject,
      timer: setTimeout(() => open.fail(transient(silence)), silenceMs),
      onPart,
      end: answer => {
        close();
        resolve(answer);
      },
      fail: error => {
        close();
        reject(error);
      },
    };
    this.#open.set(token, open);
    if (!this.#connection.send(subject, JSON.stringify(request), this.#inbox + token)) open.fail(transient('not connected'));
    return promise;
  }

  #subscribe(): void {
    if (this.#isSubscribed) return;
    this.#isSubscribed = true;
    const inbox = `${this.#inbox}*`;
    this.#connection.subscribe(
      inbox,
      msg => {
        const open = this.#open.get(msg.subject.slice(this.#inbox.length));
        if (open === undefined) return;
        open.timer.refresh();
        open.onPart?.();
        this.#onMsg(open, msg);
      },
      () => {
        this.#isSubscribed = false;
        const denied = this.#connection.denied({ operation: 'subscription', subject: inbox });
        for (const open of [...this.#open.values()]) open.fail(denied);
      },
    );
  }
}

/** An error that `retry` repeats. */
export function transient(reason: string): Error {
  return Object.assign(new Error(reason), { name: 'TimeoutError' });
}

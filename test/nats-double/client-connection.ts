import { type ClientFrame, ClientFrames } from './client-frames.ts';
import type { HeaderBlock } from './headers.ts';
import type { Views } from './json-api.ts';
import { hasWildcard, isSubject, matches } from './subjects.ts';
import type { Subscription, Subscriptions } from './subscriptions.ts';

/** Subjects that a user may publish and subscribe to. `allow` absent: everything that is not denied. */
export type Permissions = { publish?: SubjectRules; subscribe?: SubjectRules };
type SubjectRules = { allow?: readonly string[]; deny?: readonly string[] };

export type DoubleUser = { user: string; pass: string; permissions?: Permissions };

/** A message on its way to a client. */
export type Delivery = { subject: string; reply?: string; header: HeaderBlock; payload: Buffer };

/** The server's end of a socket. `delivery`: the message that the bytes are. */
export type ServerSocket = { write(bytes: Buffer, delivery?: Delivery): void; close(): void };

/**
 * Passes a message of a client on to the leader of the stream that it concerns: at once, later or never. With `views`, a server that was deposed as
 * the leader answers it.
 */
export type ToLeader = (message: { stream: string; subject: string }, pass: (views?: Views) => void) => void;

/** The parts of a server that a connection uses. */
export type ConnectionHost = {
  readonly info: Record<string, unknown> & { max_payload: number };
  readonly users: readonly DoubleUser[];
  readonly subscriptions: Subscriptions;
  publish(subject: string, reply: string, header: HeaderBlock, payload: Buffer, from: ClientConnection): void;
  /** The subscriptions of a subject have changed. */
  interestChanged(subject: string): void;
  closed(connection: ClientConnection): void;
};

/** The server's side of one client. */
export class ClientConnection {
  readonly toLeader: ToLeader | undefined;
  readonly #host: ConnectionHost;
  readonly #socket: ServerSocket;
  readonly #frames = new ClientFrames();
  readonly #subscriptions = new Map<string, Subscription>();
  #permissions: Permissions = {};
  #isConnected = false;
  #isClosed = false;
  #isVerbose = false;
  /** Whether a request without a receiver is answered with status 503. */
  #wantsNoResponders = false;

  constructor(host: ConnectionHost, socket: ServerSocket, toLeader?: ToLeader) {
    this.toLeader = toLeader;
    this.#host = host;
    this.#socket = socket;
    this.#line(`INFO ${JSON.stringify(host.info)}`);
  }

  receive(bytes: Uint8Array): void {
    for (const frame of this.#frames.read(bytes)) if (!this.#isClosed) this.#onFrame(frame);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const subscription of [...this.#subscriptions.values()]) this.#remove(subscription);
    this.#host.closed(this);
    this.#socket.close();
  }

  /** Sends a message to one of the client's subscriptions. */
  deliver(subscription: Subscription, subject: string, reply: string, header: HeaderBlock, payload: Buffer): void {
    if (this.#isClosed) return;
    const begin = `${header === '' ? 'MSG' : 'HMSG'} ${subject} ${subscription.sid} ${reply === '' ? '' : `${reply} `}`;
    const sizes = header === '' ? `${payload.length}` : `${header.length} ${header.length + payload.length}`;
    this.#socket.write(frameOf(`${begin}${sizes}\r\n`, header, payload), { subject, reply, header, payload });
    subscription.delivered += 1;
    if (subscription.max > 0 && subscription.delivered >= subscription.max) this.#remove(subscription);
  }

  /** Answers a request whose subject has no subscriber. */
  noResponders(subject: string, reply: string): void {
    if (!this.#wantsNoResponders || reply === '') return;
    for (const subscription of this.#subscriptions.values()) {
      if (!matches(subscription.subject, reply)) continue;
      this.deliver(subscription, reply, '', `NATS/1.0 503\r\nNats-Subject: ${subject}\r\n\r\n`, NOTHING);
      return;
    }
  }

  #onFrame(frame: ClientFrame): void {
    if (frame.type === 'connect') return void this.#connect(frame.options);
    if (frame.type === 'unknown') return void this.#fail('Unknown Protocol Operation');
    if (!this.#isConnected && this.#host.users.length > 0) return void this.#fail('Authorization Violation');
    if (frame.type === 'ping') return void this.#line('PONG');
    if (frame.type === 'sub') this.#subscribe(frame);
    else if (frame.type === 'unsub') this.#unsubscribe(frame.sid, frame.max);
    else if (frame.type === 'pub') this.#publish(frame);
    if (this.#isVerbose && frame.type !== 'pong') this.#line('+OK');
  }

  #connect(options: Record<string, unknown>): void {
    const { users } = this.#host;
    const user = users.find(({ user, pass }) => user === options.user && pass === options.pass);
    if (users.length > 0 && user === undefined) return void this.#fail('Authorization Violation');
    this.#permissions = user?.permissions ?? {};
    this.#isConnected = true;
    this.#isVerbose = options.verbose === true;
    this.#wantsNoResponders = options.no_responders === true && options.headers === true;
    if (this.#isVerbose) this.#line('+OK');
  }

  #subscribe({ subject, queue, sid }: Extract<ClientFrame, { type: 'sub' }>): void {
    if (!isSubject(subject)) return void this.#line(`-ERR 'Invalid Subject'`);
    if (!isPermitted(this.#permissions.subscribe, subject))
      return void this.#line(
        `-ERR 'Permissions Violation for Subscription to "${subject}"${queue === '' ? '' : ` using queue "${queue}"`}'`,
      );
    if (this.#subscriptions.has(sid)) return;
    const subscription: Subscription = { connection: this, subject, queue, sid, max: 0, delivered: 0 };
    this.#subscriptions.set(sid, subscription);
    this.#host.subscriptions.add(subscription);
    this.#host.interestChanged(subject);
  }

  /** `max` > 0: after this number of messages, counted from the subscription's beginning. */
  #unsubscribe(sid: string, max: number): void {
    const subscription = this.#subscriptions.get(sid);
    if (subscription === undefined) return;
    subscription.max = max;
    if (max === 0 || subscription.delivered >= max) this.#remove(subscription);
  }

  #remove(subscription: Subscription): void {
    if (!this.#subscriptions.delete(subscription.sid)) return;
    this.#host.subscriptions.remove(subscription);
    this.#host.interestChanged(subscription.subject);
  }

  #publish({ subject, reply, header, payload }: Extract<ClientFrame, { type: 'pub' }>): void {
    if (header.length + payload.length > this.#host.info.max_payload) return void this.#fail('Maximum Payload Violation');
    if (!isPermitted(this.#permissions.publish, subject))
      return void this.#line(`-ERR 'Permissions Violation for Publish to "${subject}"'`);
    this.#host.publish(subject, reply, header, payload, this);
  }

  #line(line: string): void {
    this.#socket.write(Buffer.from(`${line}\r\n`));
  }

  #fail(reason: string): void {
    this.#line(`-ERR '${reason}'`);
    this.close();
  }
}

/** One buffer without copies of its parts: most of the bytes of a run are such frames. */
function frameOf(line: string, header: HeaderBlock, payload: Buffer): Buffer {
  const headerAt = Buffer.byteLength(line);
  const payloadAt = headerAt + header.length;
  const frame = Buffer.allocUnsafe(payloadAt + payload.length + CRLF.length);
  frame.write(line, 0, 'utf8');
  frame.write(header, headerAt, 'latin1');
  payload.copy(frame, payloadAt);
  frame.write(CRLF, payloadAt + payload.length, 'latin1');
  return frame;
}

const CRLF = '\r\n';
const NOTHING = Buffer.alloc(0);

function isPermitted(rules: SubjectRules | undefined, subject: string): boolean {
  if (rules?.allow !== undefined && !rules.allow.some(allowed => matches(allowed, subject))) return false;
  // A wildcard subscription that is wider than a denied subject stays permitted in NATS, which filters its messages.
  return !(rules?.deny ?? []).some(denied => matches(denied, subject) && (hasWildcard(denied) || !hasWildcard(subject)));
}

import { type ClientFrame, ClientFrames } from './client-frames.ts';
import type { Clock } from './clock.ts';
import type { HeaderBlock } from './headers.ts';
import type { Views } from './json-api.ts';
import { hasWildcard, isSubject, matches, Pattern } from './subjects.ts';
import type { Subscription, Subscriptions } from './subscriptions.ts';

/** Subjects that a user may publish and subscribe to. `allow` absent: everything that is not denied. */
type Permissions = { publish?: SubjectRules; subscribe?: SubjectRules };
type SubjectRules = { allow?: readonly string[]; deny?: readonly string[] };

export type DoubleUser = { user: string; pass: string; permissions?: Permissions };

/** A message on its way to a client. */
export type Delivery = { subject: string; reply?: string; header: HeaderBlock; payload: Buffer };

/** The server's end of a socket. */
export type ServerSocket = {
  /** Bytes that the client has not read yet. */
  readonly unreadBytes: number;
  /** How often the client has read what was there. */
  readonly reads: number;
  /** `delivery`: the message that the bytes are. */
  write(bytes: Buffer, delivery?: Delivery): void;
  /** `unreadBytesMax`: the client still reads this many of the bytes before the end. */
  close(unreadBytesMax?: number): void;
};

/**
 * When the server cuts a client off that reads too slowly: the buffers of its socket (`unreadBytesMax`) are full, and take nothing for the write
 * deadline.
 */
export type SlowConsumers = { unreadBytesMax: number; writeDeadlineMs: number; onCut: () => void };

/**
 * Passes a message of a client on to the leader of the stream that it concerns: at once, later or never. With `views`, a server that was deposed as
 * the leader answers it.
 */
export type ToLeader = (message: { stream: string; subject: string }, pass: (views?: Views) => void) => void;

/** The parts of a server that a connection uses. */
export type ConnectionHost = {
  readonly info: Record<string, unknown> & { max_payload: number };
  readonly users: readonly DoubleUser[];
  readonly slowConsumers: SlowConsumers | undefined;
  readonly clock: Clock;
  readonly subscriptions: Subscriptions;
  publish(subject: string, reply: string, header: HeaderBlock, payload: Buffer, from: ClientConnection): void;
  /** The subscriptions of a subject have changed. */
  interestChanged(subject: string): void;
  /** A client was denied a publish or a subscription; `what` names it. */
  onDenied(what: string): void;
  closed(connection: ClientConnection): void;
};

/** The server's side of one client. */
export class ClientConnection {
  readonly toLeader: ToLeader | undefined;
  readonly #host: ConnectionHost;
  readonly #socket: ServerSocket;
  readonly #frames = new ClientFrames();
  readonly #subscriptions = new Map<string, Subscription>();
  #user: { name: string; publish: Rules; subscribe: Rules } | undefined;
  /** The socket takes no more bytes. */
  #isStuck = false;
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

  close(unreadBytesMax?: number): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const subscription of [...this.#subscriptions.values()]) this.#remove(subscription);
    this.#host.closed(this);
    this.#socket.close(unreadBytesMax);
  }

  /** Sends a message to one of the client's subscriptions. */
  deliver(subscription: Subscription, subject: string, reply: string, header: HeaderBlock, payload: Buffer): void {
    if (this.#isClosed) return;
    const begin = `${header === '' ? 'MSG' : 'HMSG'} ${subject} ${subscription.sid} ${reply === '' ? '' : `${reply} `}`;
    const sizes = header === '' ? `${payload.length}` : `${header.length} ${header.length + payload.length}`;
    this.#socket.write(frameOf(`${begin}${sizes}\r\n`, header, payload), { subject, reply, header, payload });
    this.#watchSocket();
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
    if (user?.permissions) {
      const { publish, subscribe } = user.permissions;
      this.#user = { name: user.user, publish: new Rules(publish), subscribe: new Rules(subscribe) };
    }
    this.#isConnected = true;
    this.#isVerbose = options.verbose === true;
    this.#wantsNoResponders = options.no_responders === true && options.headers === true;
    if (this.#isVerbose) this.#line('+OK');
  }

  #subscribe({ subject, queue, sid }: Extract<ClientFrame, { type: 'sub' }>): void {
    if (!isSubject(subject)) return void this.#line(`-ERR 'Invalid Subject'`);
    if (this.#user?.subscribe.permits(subject) === false)
      return void this.#deny(`Subscription to "${subject}"${queue === '' ? '' : ` using queue "${queue}"`}`);
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
    if (this.#user?.publish.permits(subject) === false) return void this.#deny(`Publish to "${subject}"`);
    this.#host.publish(subject, reply, header, payload, this);
  }

  #deny(what: string): void {
    this.#line(`-ERR 'Permissions Violation for ${what}'`);
    this.#host.onDenied(`${this.#user!.name}: ${what}`);
  }

  #watchSocket(): void {
    const { slowConsumers, clock } = this.#host;
    if (slowConsumers === undefined || this.#isStuck || this.#isClosed) return;
    const { unreadBytesMax, writeDeadlineMs, onCut } = slowConsumers;
    const { unreadBytes, reads } = this.#socket;
    if (unreadBytes <= unreadBytesMax) return;
    this.#isStuck = true;
    clock.after(writeDeadlineMs, () => {
      this.#isStuck = false;
      if (this.#isClosed) return;
      if (this.#socket.reads !== reads) return this.#watchSocket();
      onCut();
      this.close(unreadBytesMax);
    });
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

/** Subjects that a user may use, compared with every message that it sends. */
class Rules {
  readonly #literal: ReadonlySet<string>;
  readonly #patterns: readonly Pattern[] | undefined;
  readonly #denied: readonly string[];

  constructor({ allow, deny = [] }: SubjectRules = {}) {
    this.#literal = new Set(allow);
    this.#patterns = allow?.filter(hasWildcard).map(subject => new Pattern(subject));
    this.#denied = deny;
  }

  permits(subject: string): boolean {
    const isAllowed =
      this.#patterns === undefined || this.#literal.has(subject) || this.#patterns.some(pattern => pattern.matches(subject));
    // NATS permits a wildcard subscription that is wider than a denied subject, and filters its messages.
    return isAllowed && !this.#denied.some(denied => matches(denied, subject) && (hasWildcard(denied) || !hasWildcard(subject)));
  }
}

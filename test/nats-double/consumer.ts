import { Alarm } from './clock.ts';
import { type ConsumerConfig, checkConsumerUpdate, filtersOf } from './consumer-config.ts';
import { statusBlock, withHeaders } from './headers.ts';
import { matchesAny, type StoredMessage } from './message-store.ts';
import { type PullRequest, PullRequests } from './pull-requests.ts';
import { movedFloor, type Sequences, StoredState } from './stored-state.ts';
import type { Stream, StreamHost } from './stream.ts';
import { answeredMetadata } from './stream-config.ts';
import { matches } from './subjects.ts';
import { goTime, msOf, nanosOf } from './times.ts';

const NOTHING = Buffer.alloc(0);
const ACK = new Set(['', '+ACK', '+OK']);

/** A delivered message without an acknowledgement. `dseq`: the sequence of its first delivery. */
type Pending = { dseq: number; atMs: number };

type Next = { message: StoredMessage; deliveries: number } | 'end' | 'stalled';

/**
 * A consumer. Members named like fields of nats-server (sseq, dseq, rdc, rdq) have the same meaning, and the checks are in the same order
 * as in consumer.go.
 */
export class Consumer {
  config: ConsumerConfig;
  readonly #host: StreamHost;
  readonly #stream: Stream;
  readonly #createdAtMs: number;
  readonly #waiting: PullRequests;
  /** Next sequence of the stream to look at, and the next sequence of a delivery. */
  #sseq: number;
  #dseq = 1;
  #floor: Sequences;
  readonly #stored: StoredState;
  /** Messages that are still to be delivered for the first time. */
  #npc: number;
  readonly #pending = new Map<number, Pending>();
  /** Deliveries after the first. */
  readonly #rdc = new Map<number, number>();
  /** Sequences to deliver again. */
  #rdq: number[] = [];
  /** The newest messages of all subjects at the creation, which come first. */
  #newest: { seqs: number[]; resume: number } | undefined;
  #isActive = false;
  #isClosed = false;
  #isPumping = false;
  readonly #requestAlarm: Alarm;
  readonly #ackAlarm: Alarm;
  readonly #heartbeatAlarm: Alarm;
  readonly #inactiveAlarm: Alarm;

  constructor(host: StreamHost, stream: Stream, config: ConsumerConfig) {
    this.#host = host;
    this.#stream = stream;
    this.config = config;
    this.#createdAtMs = host.clock.nowMs();
    this.#waiting = new PullRequests(this.#createdAtMs);
    this.#sseq = this.#startingSeq();
    this.#floor = { dseq: 0, sseq: this.#sseq - 1 };
    this.#stored = new StoredState(this.#floor);
    this.#npc = this.#countPending();
    this.#requestAlarm = new Alarm(host.clock, () => {
      // Requests that are over end before a message is looked up for them.
      this.#processWaiting(true);
      this.#pump();
    });
    this.#ackAlarm = new Alarm(host.clock, () => this.#checkPending());
    this.#heartbeatAlarm = new Alarm(host.clock, () => this.#onHeartbeat());
    this.#inactiveAlarm = new Alarm(host.clock, () => this.#onInactive());
  }

  get #isPush(): boolean {
    return this.config.deliver_subject !== undefined;
  }

  get #nowMs(): number {
    return this.#host.clock.nowMs();
  }

  start(): void {
    const { deliver_subject, idle_heartbeat } = this.config;
    if (deliver_subject !== undefined) this.#isActive = this.#host.hasInterest(deliver_subject);
    if (idle_heartbeat !== undefined && this.#isPush) this.#heartbeatAlarm.set(this.#nowMs + msOf(idle_heartbeat));
    this.#setInactiveAlarm();
    this.#pump();
  }

  /** Its server is gone. */
  vanish(): void {
    this.#waiting.clear();
    this.close();
  }

  /** The state of its deliveries is lost, except for the acknowledgements: what is not acknowledged is delivered as if for the first time. */
  forgetDeliveries(): void {
    if (this.#pending.size === 0) return;
    const first = Math.min(...this.#pending.keys());
    this.#pending.clear();
    this.#rdc.clear();
    this.#rdq = [];
    this.#sseq = Math.min(this.#sseq, first);
    this.recount();
    this.#setAckAlarm();
    this.#pump();
  }

  /** The stream has lost its messages after a sequence, and reuses their sequences. */
  onTailLost(lastSeq: number): void {
    for (const seq of this.#pending.keys()) if (seq > lastSeq) this.#pending.delete(seq);
    for (const seq of this.#rdc.keys()) if (seq > lastSeq) this.#rdc.delete(seq);
    this.#rdq = this.#rdq.filter(seq => seq <= lastSeq);
    this.#sseq = Math.min(this.#sseq, lastSeq + 1);
    this.#floor.sseq = Math.min(this.#floor.sseq, lastSeq);
    this.recount();
    this.#setAckAlarm();
    this.#pump();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stream.consumers.delete(this.config.name);
    for (const alarm of [this.#requestAlarm, this.#ackAlarm, this.#heartbeatAlarm, this.#inactiveAlarm]) alarm.stop();
    for (const { reply } of this.#waiting.all()) this.#send(reply, '409 Consumer Deleted');
  }

  /** Throws if nats-server does not allow the change. */
  update(config: ConsumerConfig): void {
    checkConsumerUpdate(this.config, config);
    const hasNewFilters = filtersOf(config).join(' ') !== filtersOf(this.config).join(' ');
    this.config = config;
    if (hasNewFilters) this.#npc = this.#countPending();
    this.#setInactiveAlarm();
    this.#setAckAlarm();
    this.#pump();
  }

  interestChanged(subject: string): void {
    const { deliver_subject } = this.config;
    if (deliver_subject === undefined || !matches(subject, deliver_subject)) return;
    this.#isActive = this.#host.hasInterest(deliver_subject);
    this.#setInactiveAlarm();
    this.#pump();
  }

  onStored(message: StoredMessage): void {
    if (!this.#isFor(message)) return;
    this.#npc += 1;
    this.#pump();
  }

  /**
   * nats-server notifies only consumers with a matching filter. If a consumer's filter has changed since the delivery, it keeps waiting for
   * the acknowledgement.
   */
  onRemoved(message: StoredMessage): void {
    if (!this.#isFor(message)) return;
    const { seq } = message;
    if (seq >= this.#sseq) this.#npc -= 1;
    if (this.#pending.has(seq)) this.#acknowledge(seq);
    else this.#rdc.delete(seq);
  }

  /** A purge has removed one message. */
  onPurgedOne(seq: number, purged: string): void {
    if (!matchesAny(filtersOf(this.config), purged)) return;
    if (this.#pending.has(seq)) this.#acknowledge(seq);
    else this.#rdc.delete(seq);
  }

  /** Counts what is pending again, because several messages were removed at once. */
  recount(): void {
    this.#npc = this.#countPending();
  }

  /** Whether the consumer may still deliver a message, or waits for its acknowledgement. */
  wants(message: StoredMessage): boolean {
    if (!this.#isFor(message)) return false;
    const { seq } = message;
    const waits = seq > this.#floor.sseq && (seq >= this.#sseq || this.#pending.has(seq));
    return waits || this.#rdc.has(seq);
  }

  // Requests.

  /** A request for the next messages; its answers go to `reply`. */
  pull(reply: string, body: Buffer): void {
    if (this.#isPush) return void this.#send(reply, '409 Consumer is push based');
    const text = body.toString().trim();
    let request: { batch?: number; max_bytes?: number; expires?: number; idle_heartbeat?: number; no_wait?: boolean };
    try {
      request = text.startsWith('{') ? JSON.parse(text) : { batch: Number.parseInt(text, 10) || 1 };
    } catch (error) {
      return void this.#send(reply, `400 Bad Request - ${(error as Error).message}`);
    }
    const { batch = 0, max_bytes = 0, expires = 0, idle_heartbeat = 0, no_wait = false } = request;
    if (idle_heartbeat > 0 && idle_heartbeat * 2 > expires)
      return void this.#send(reply, '400 Bad Request - heartbeat value too large');
    const nowMs = this.#nowMs;
    const isFull = () => this.#waiting.length >= (this.config.max_waiting ?? 0);
    if (isFull()) this.#processWaiting(false);
    if (no_wait && this.#npc + this.#rdq.length === 0 && expires === 0) {
      this.#waiting.lastAtMs = nowMs;
      return void this.#send(reply, '404 No Messages');
    }
    if (isFull()) {
      if (idle_heartbeat === 0) this.#send(reply, '409 Exceeded MaxWaiting');
      return;
    }
    const heartbeatMs = msOf(idle_heartbeat);
    const waiting: PullRequest = {
      reply,
      left: batch,
      delivered: 0,
      bytesLeft: max_bytes,
      noWait: no_wait,
      expiresAtMs: expires === 0 ? Number.POSITIVE_INFINITY : nowMs + msOf(expires),
      heartbeatMs,
      nextHeartbeatAtMs: heartbeatMs > 0 ? nowMs + heartbeatMs : Number.POSITIVE_INFINITY,
    };
    this.#waiting.add(waiting, nowMs);
    this.#pump();
  }

  /** A consumer without acknowledgements does not subscribe to them. */
  get takesAcks(): boolean {
    return this.config.ack_policy !== 'none';
  }

  /** The acknowledgement of a delivery; its subject names the sequences: `$JS.ACK.stream.consumer.deliveries.sseq.dseq.time.pending`. */
  onAck(subject: string, reply: string, body: Buffer): void {
    const [sseq = 0, dseq = 0] = subject.split('.').slice(5, 7).map(Number);
    const text = body.toString();
    let isAnswered = sseq > 0;
    if (ACK.has(text) || text.startsWith('+TERM')) isAnswered = sseq < this.#sseq && this.#acknowledge(sseq);
    else if (text.startsWith('+NXT')) {
      if (sseq < this.#sseq) this.#acknowledge(sseq);
      this.pull(reply, body.subarray('+NXT'.length));
      return;
    } else if (text.startsWith('-NAK')) this.#nak(sseq, dseq, text.slice('-NAK'.length).trim());
    else if (text === '+WPI') this.#inProgress(sseq);
    if (isAnswered && reply !== '') this.#host.send(reply, '', '', NOTHING);
    this.#pump();
  }

  /** `isListed`: whether it is shown in a list, from which nats-server omits its version. */
  info({ isListed = false } = {}): Record<string, unknown> {
    this.#processWaiting(true);
    const { store } = this.#stream;
    this.#npc = Math.min(this.#npc, store.count, Math.max(0, store.lastSeq - this.#sseq + 1));
    const { delivered, floor } = this.#stored;
    return {
      stream_name: this.#stream.config.name,
      name: this.config.name,
      created: goTime(this.#createdAtMs),
      config: { ...this.config, metadata: answeredMetadata(this.config.metadata, isListed) },
      delivered: { consumer_seq: delivered.dseq, stream_seq: delivered.sseq },
      ack_floor: { consumer_seq: floor.dseq, stream_seq: floor.sseq },
      num_ack_pending: this.#pending.size,
      num_redelivered: this.config.max_deliver === 1 ? 0 : this.#rdc.size,
      num_waiting: this.#waiting.length,
      num_pending: Math.max(0, this.#npc),
      ...(this.#isPush && this.#isActive && { push_bound: true }),
      ts: goTime(this.#nowMs),
    };
  }

  // Delivery.

  #startingSeq(): number {
    const { store, config: stream } = this.#stream;
    const { deliver_policy, opt_start_seq, opt_start_time } = this.config;
    const filters = filtersOf(this.config);
    if (opt_start_seq !== undefined) return Math.max(opt_start_seq, store.firstSeq);
    let seq = store.lastSeq + 1;
    if (deliver_policy === 'all') seq = store.firstSeq;
    else if (deliver_policy === 'last')
      seq = Math.max(...(filters.length === 0 ? ['>'] : filters).map(filter => store.last(filter)?.seq ?? 0));
    else if (deliver_policy === 'by_start_time') seq = store.seqAt(Date.parse(opt_start_time ?? ''));
    else if (deliver_policy === 'last_per_subject' && stream.max_msgs_per_subject === 1) seq = store.firstSeq;
    else if (deliver_policy === 'last_per_subject') {
      const seqs = store.lastOfEach(filters, store.lastSeq);
      if (seqs.length > 0) this.#newest = { seqs, resume: store.lastSeq };
      seq = seqs[0] ?? store.lastSeq;
    }
    if (store.firstSeq === 0) return 1;
    return Math.max(store.firstSeq, Math.min(seq, store.lastSeq + 1));
  }

  #countPending(): number {
    const isNewestOnly = this.config.deliver_policy === 'last_per_subject';
    return this.#stream.store.pending(filtersOf(this.config), this.#sseq, isNewestOnly);
  }

  #isFor({ subject }: StoredMessage): boolean {
    return matchesAny(filtersOf(this.config), subject);
  }

  /** Delivers as many messages as the waiting requests take. */
  #pump(): void {
    if (this.#isPumping || this.#isClosed) return;
    this.#isPumping = true;
    let next: Next = 'end';
    while (this.#isPush ? this.#isActive : this.#waiting.length > 0) {
      next = this.#next();
      if (typeof next === 'string') break;
      if (!this.#deliver(next)) break;
      next = 'end';
    }
    if (!this.#isPush) this.#processWaiting(next !== 'stalled');
    this.#requestAlarm.set(this.#waiting.nextAtMs());
    this.#isPumping = false;
  }

  #next(): Next {
    const { store } = this.#stream;
    const { max_deliver, max_ack_pending = 0 } = this.config;
    for (let seq = this.#rdq.shift(); seq !== undefined; seq = this.#rdq.shift()) {
      const redeliveries = (this.#rdc.get(seq) ?? 0) + 1;
      this.#rdc.set(seq, redeliveries);
      if (max_deliver > 0 && redeliveries + 1 > max_deliver) {
        this.#abandon(seq);
        continue;
      }
      const message = store.get(seq);
      if (message !== undefined) return { message, deliveries: redeliveries + 1 };
      this.#rdc.delete(seq);
      this.#acknowledge(seq);
    }
    if (max_ack_pending > 0 && this.#pending.size >= max_ack_pending) return 'stalled';
    if (this.#newest !== undefined) {
      const seq = this.#newest.seqs.shift()!;
      this.#sseq = seq + 1;
      if (this.#newest.seqs.length === 0) {
        this.#sseq = this.#newest.resume + 1;
        this.#newest = undefined;
      }
      const message = store.get(seq);
      return message === undefined ? 'end' : { message, deliveries: 1 };
    }
    const message = store.next(filtersOf(this.config), this.#sseq);
    this.#sseq = Math.max(this.#sseq, (message?.seq ?? store.lastSeq) + 1);
    if (message === undefined) this.#npc = 0;
    return message === undefined ? 'end' : { message, deliveries: 1 };
  }

  /** Returns false, and takes the message back, if no request takes it. */
  #deliver({ message, deliveries }: Exclude<Next, string>): boolean {
    const { seq, subject, storedAtMs } = message;
    const { headers_only, deliver_subject, name, idle_heartbeat } = this.config;
    if (deliveries === 1) this.#npc -= 1;
    const place = `${deliveries}.${seq}.${this.#dseq}.${nanosOf(storedAtMs)}.${Math.max(0, this.#npc)}`;
    const ackReply = `$JS.ACK.${this.#stream.config.name}.${name}.${place}`;
    const header = headers_only ? withHeaders(message.header, { 'Nats-Msg-Size': message.payload.length }) : message.header;
    const payload = headers_only ? NOTHING : message.payload;
    const bytes = subject.length + ackReply.length + header.length + payload.length;
    const request = this.#isPush ? undefined : this.#nextRequest(bytes);
    const to = deliver_subject ?? request?.reply;
    if (to === undefined) {
      this.#takeBack(seq, deliveries);
      return false;
    }
    const dseq = this.#dseq;
    this.#dseq += 1;
    this.#onDelivered(dseq, seq);
    this.#host.deliver(to, subject, ackReply, header, payload);
    if (request !== undefined && request.left <= 0 && request.bytesLeft > 0)
      this.#send(to, '409 Batch Completed', pendingOf(request));
    this.#waiting.lastAtMs = this.#nowMs;
    if (this.#isPush && idle_heartbeat !== undefined) this.#heartbeatAlarm.set(this.#nowMs + msOf(idle_heartbeat));
    return true;
  }

  #takeBack(seq: number, deliveries: number): void {
    if (deliveries === 1 && seq === this.#sseq - 1) {
      this.#sseq -= 1;
      this.#npc += 1;
    } else if (!this.#rdq.includes(seq)) {
      const redeliveries = this.#rdc.get(seq) ?? 0;
      if (redeliveries > 1) this.#rdc.set(seq, redeliveries - 1);
      else this.#rdc.delete(seq);
      this.#rdq.push(seq);
    }
  }

  #onDelivered(dseq: number, sseq: number): void {
    if (this.config.ack_policy === 'none') {
      this.#floor = { dseq, sseq };
      this.#stored.onDeliveredWithoutAck({ dseq, sseq });
      return;
    }
    this.#stored.onDelivered({ dseq, sseq });
    const known = this.#pending.get(sseq);
    if (known === undefined) this.#pending.set(sseq, { dseq, atMs: this.#nowMs });
    else known.atMs = this.#nowMs;
    this.#setAckAlarm();
  }

  /** The next waiting request that accepts a message of this size. Ends requests that do not. */
  #nextRequest(bytes: number): PullRequest | undefined {
    for (let request = this.#waiting.first; request !== undefined; request = this.#waiting.first) {
      if (this.#nowMs >= request.expiresAtMs) this.#expire(request);
      else if (request.bytesLeft > 0 && bytes > request.bytesLeft) {
        this.#send(request.reply, '409 Message Size Exceeds MaxBytes', pendingOf(request));
        this.#waiting.remove(request);
      } else {
        if (request.bytesLeft > 0) {
          request.bytesLeft -= bytes;
          if (request.bytesLeft === 0) request.left = 1;
        }
        if (this.#host.hasInterest(request.reply)) {
          this.#waiting.takeFirst();
          if (request.left > 0 && request.heartbeatMs > 0) request.nextHeartbeatAtMs = this.#nowMs + request.heartbeatMs;
          return request;
        }
        this.#waiting.remove(request);
      }
    }
    return undefined;
  }

  #expire(request: PullRequest): void {
    this.#send(request.reply, '408 Request Timeout', pendingOf(request));
    this.#waiting.lastAtMs = Math.max(this.#waiting.lastAtMs, request.expiresAtMs);
    this.#waiting.remove(request);
  }

  /** Ends requests whose time is over, and sends heartbeats. `isAtEnd`: no message is left for requests that do not wait. */
  #processWaiting(isAtEnd: boolean): void {
    const nowMs = this.#nowMs;
    for (const request of this.#waiting.all()) {
      if (nowMs >= request.expiresAtMs) this.#expire(request);
      else if (isAtEnd && request.noWait && (request.expiresAtMs === Number.POSITIVE_INFINITY || request.delivered > 0)) {
        this.#send(request.reply, '404 No Messages');
        this.#waiting.lastAtMs = nowMs;
        this.#waiting.remove(request);
      } else if (!this.#host.hasInterest(request.reply)) this.#waiting.remove(request);
      else if (nowMs >= request.nextHeartbeatAtMs) {
        this.#sendHeartbeat(request.reply);
        request.nextHeartbeatAtMs = nowMs + request.heartbeatMs;
      }
    }
  }

  // Acknowledgements.

  /** Returns whether nats-server would answer. */
  #acknowledge(sseq: number): boolean {
    const pending = this.#pending.get(sseq);
    if (pending !== undefined) {
      this.#pending.delete(sseq);
      this.#moveFloor(pending.dseq, sseq);
      this.#stored.onAck({ dseq: pending.dseq, sseq });
    }
    this.#rdc.delete(sseq);
    this.#rdq = this.#rdq.filter(seq => seq !== sseq);
    this.#setAckAlarm();
    const message = this.#stream.store.get(sseq);
    if (message !== undefined && this.#stream.config.retention === 'workqueue' && !this.#stream.isWanted(message))
      this.#stream.remove(sseq);
    return true;
  }

  #moveFloor(dseq: number, sseq: number): void {
    this.#floor = movedFloor(this.#floor, this.#lastSequences(), { dseq, sseq }, this.#firstDeliveries);
  }

  #lastSequences(): Sequences {
    return { dseq: this.#dseq - 1, sseq: this.#sseq - 1 };
  }

  get #firstDeliveries(): ReadonlyMap<number, number> {
    return new Map([...this.#pending].map(([sseq, { dseq }]) => [sseq, dseq]));
  }

  #nak(sseq: number, dseq: number, argument: string): void {
    const pending = this.#pending.get(sseq);
    if (dseq <= this.#floor.dseq || dseq > this.#dseq || pending === undefined) return;
    const delayMs = delayOf(argument);
    if (delayMs !== undefined) {
      this.#rdq = this.#rdq.filter(seq => seq !== sseq);
      pending.atMs = this.#nowMs - msOf(this.config.ack_wait ?? 0) + delayMs;
      this.#setAckAlarm();
    } else if (!this.#rdq.includes(sseq)) this.#rdq.push(sseq);
  }

  #inProgress(sseq: number): void {
    const pending = this.#pending.get(sseq);
    if (pending !== undefined) pending.atMs = this.#nowMs;
    this.#setAckAlarm();
  }

  #setAckAlarm(): void {
    const ackWaitMs = msOf(this.config.ack_wait ?? 0);
    const queued = new Set(this.#rdq);
    let next = Number.POSITIVE_INFINITY;
    for (const [seq, { atMs }] of this.#pending) if (!queued.has(seq)) next = Math.min(next, atMs + ackWaitMs);
    this.#ackAlarm.set(next);
  }

  /** Queues messages again that were not acknowledged in time. */
  #checkPending(): void {
    const nowMs = this.#nowMs;
    const ackWaitMs = msOf(this.config.ack_wait ?? 0);
    const { max_deliver } = this.config;
    const expired: number[] = [];
    for (const [seq, { atMs }] of [...this.#pending]) {
      if (nowMs - atMs < ackWaitMs || this.#rdq.includes(seq)) continue;
      if (max_deliver > 0 && Math.max(1, this.#rdc.get(seq) ?? 1) >= max_deliver) {
        const redeliveries = Math.max(1, this.#rdc.get(seq) ?? 1);
        this.#abandon(seq);
        this.#rdc.set(seq, redeliveries);
      } else expired.push(seq);
    }
    expired.sort((a, b) => a - b);
    this.#rdq.push(...expired);
    this.#setAckAlarm();
    this.#pump();
  }

  /** A message that was delivered too often stays in the stream, but is no longer waited for. */
  #abandon(seq: number): void {
    const pending = this.#pending.get(seq);
    if (pending === undefined) return;
    this.#pending.delete(seq);
    this.#stored.onDelivered({ dseq: pending.dseq, sseq: seq }, true);
    this.#moveFloor(pending.dseq, seq);
  }

  // Purges, heartbeats and the end.

  onPurged(filter: string): void {
    const { store } = this.#stream;
    const filters = filtersOf(this.config);
    const isAll = filter === '';
    const isWithin = filters.some(one => matches(filter, one));
    const covers = filters.length === 0 || filters.some(one => matches(one, filter));
    if (!isAll && !isWithin && !covers) return;
    const isWider = !isAll && (!isWithin || !filters.every(one => matches(filter, one)));
    const firstOfFilter = isAll || isWider ? store.firstSeq : (store.next([filter], 0)?.seq ?? 0);
    const start = firstOfFilter === 0 && !isWider ? store.lastSeq + 1 : firstOfFilter;
    this.#sseq = Math.max(this.#sseq, start);
    if (this.#floor.sseq < start) {
      this.#floor.sseq = start - 1;
      // nats-server takes them in the order of a Go map.
      for (const [seq, pending] of [...this.#pending].sort(([a], [b]) => a - b)) {
        if (seq > this.#floor.sseq && !(isWider && store.get(seq) === undefined)) continue;
        this.#floor.dseq = Math.max(this.#floor.dseq, pending.dseq);
        this.#dseq = Math.max(this.#dseq, this.#floor.dseq);
        this.#pending.delete(seq);
        this.#rdc.delete(seq);
        this.#stored.onAck({ dseq: pending.dseq, sseq: seq });
      }
    }
    if (this.#pending.size === 0) {
      this.#rdc.clear();
      this.#floor = this.#lastSequences();
    }
    this.#rdq = this.#rdq.filter(seq => seq >= this.#sseq);
    this.#stored.replace(this.#lastSequences(), this.#floor, this.#firstDeliveries);
    this.#setAckAlarm();
  }

  #onHeartbeat(): void {
    const { deliver_subject, idle_heartbeat = 0 } = this.config;
    if (this.#isActive) this.#sendHeartbeat(deliver_subject!);
    this.#heartbeatAlarm.set(this.#nowMs + msOf(idle_heartbeat));
  }

  #setInactiveAlarm(): void {
    const { inactive_threshold = 0 } = this.config;
    const isWatched = inactive_threshold > 0 && !(this.#isPush && this.#isActive);
    this.#inactiveAlarm.set(isWatched ? this.#nowMs + msOf(inactive_threshold) : Number.POSITIVE_INFINITY);
  }

  #onInactive(): void {
    const thresholdMs = msOf(this.config.inactive_threshold ?? 0);
    const nowMs = this.#nowMs;
    if (this.#isPush) return void this.close();
    this.#processWaiting(true);
    if (this.#waiting.length > 0) return void this.#inactiveAlarm.set(nowMs + thresholdMs);
    const ackWaitMs = msOf(this.config.ack_wait ?? 0);
    const lastAtMs = [...this.#pending.values()].reduce(
      (last, { atMs }) => Math.max(last, atMs + ackWaitMs),
      this.#waiting.lastAtMs,
    );
    if (nowMs - lastAtMs < thresholdMs) this.#inactiveAlarm.set(lastAtMs + thresholdMs);
    else this.close();
  }

  #sendHeartbeat(to: string): void {
    this.#send(to, '100 Idle Heartbeat', { 'Nats-Last-Consumer': this.#dseq - 1, 'Nats-Last-Stream': this.#sseq - 1 });
  }

  #send(to: string, status: string, added: Record<string, number> = {}): void {
    this.#host.send(to, '', statusBlock(status, added), NOTHING);
  }
}

function pendingOf({ left, bytesLeft }: PullRequest): Record<string, number> {
  return { 'Nats-Pending-Messages': left, 'Nats-Pending-Bytes': bytesLeft };
}

const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m)$/;
const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000 };

/** The delay of a negative acknowledgement: `{"delay": nanoseconds}` or a duration of Go; undefined: none. */
function delayOf(argument: string): number | undefined {
  if (argument === '') return undefined;
  try {
    if (argument.startsWith('{')) return msOf((JSON.parse(argument) as { delay?: number }).delay ?? 0);
  } catch {
    return undefined;
  }
  const [, amount, unit] = DURATION.exec(argument) ?? [];
  return amount === undefined ? undefined : Number(amount) * UNIT_MS[unit!]!;
}

import { ApiError } from './api-error.ts';
import { Alarm, type Clock } from './clock.ts';
import { Consumer } from './consumer.ts';
import { type ConsumerConfig, checkForStream, checkUnique } from './consumer-config.ts';
import { Follower } from './follower.ts';
import { type HeaderBlock, headerOf, withHeaders, withoutStatus } from './headers.ts';
import { MessageStore, type StoredMessage, storedBytes } from './message-store.ts';
import { answeredMetadata, republished, type StreamConfig } from './stream-config.ts';
import { Pattern } from './subjects.ts';
import { goTime, msOf } from './times.ts';

/** The parts of a server that a stream and its consumers use. */
export type StreamHost = {
  readonly clock: Clock;
  send(subject: string, reply: string, header: HeaderBlock, payload: Buffer): void;
  /** Sends a message to the subscribers of `to`, which receive it with its original subject. */
  deliver(to: string, subject: string, reply: string, header: HeaderBlock, payload: Buffer): void;
  hasInterest(subject: string): boolean;
  /** A message was stored whose id the duplicate window has forgotten. */
  onStoredAgain(): void;
};

/**
 * The state of a stream as seen by a server that leads it, or believes that it does. `silentSinceMs`: when its followers last answered;
 * absent: they still answer.
 */
export type LeaderView = { readonly store: MessageStore; readonly leaderSinceMs: number; readonly silentSinceMs?: number };

/** nats-server stores the length of headers in 16 bits. */
const HEADER_BYTES_MAX = 0xffff;

export type PurgeRequest = { filter?: string; seq?: number; keep?: number };

export class Stream implements LeaderView {
  config: StreamConfig;
  readonly createdAtMs: number;
  readonly store: MessageStore;
  readonly consumers = new Map<string, Consumer>();
  leaderSinceMs: number;
  /** A fault: it refuses messages as if it had no room. */
  isFull = false;
  #followers: Follower[] = [];
  #subjects: Pattern[];
  readonly #host: StreamHost;
  /** Ids of the duplicate window, the oldest first. */
  readonly #ids = new Map<string, { seq: number; atMs: number }>();
  readonly #forgottenIds = new Set<string>();
  readonly #expiry: Alarm;
  #lastId = '';

  constructor(host: StreamHost, config: StreamConfig) {
    this.#host = host;
    this.config = config;
    this.createdAtMs = host.clock.nowMs();
    this.leaderSinceMs = this.createdAtMs;
    this.#subjects = patternsOf(config);
    this.store = new MessageStore(config.first_seq ?? 0);
    this.#replicate();
    this.#expiry = new Alarm(host.clock, () => this.#expire());
  }

  /** The replicas that do not lead. */
  get followers(): readonly Follower[] {
    return this.#followers;
  }

  /** The state as the leader knows it when its followers fall silent. It does not change any more. */
  view(): LeaderView {
    return { store: this.store.copy(), leaderSinceMs: this.leaderSinceMs, silentSinceMs: this.#host.clock.nowMs() };
  }

  changeLeader(): void {
    this.leaderSinceMs = this.#host.clock.nowMs();
  }

  /** The newest messages were lost, on the followers too. */
  loseTail(lastSeq: number): void {
    this.store.truncate(lastSeq);
    this.#onTailLost();
  }

  /** The stream is again as it was: what was stored since then is lost, and what was removed is back. */
  goBack(to: MessageStore): void {
    this.store.become(to);
    this.#onTailLost();
  }

  #onTailLost(): void {
    const { lastSeq } = this.store;
    for (const [id, { seq }] of this.#ids) if (seq > lastSeq) this.#ids.delete(id);
    for (const consumer of this.consumers.values()) consumer.onTailLost(lastSeq);
    this.#replicate();
    this.#setExpiry();
  }

  /** The duplicate window has passed for every id. */
  forgetIds(): void {
    for (const id of this.#ids.keys()) this.#forgottenIds.add(id);
    this.#ids.clear();
  }

  #replicate(): void {
    this.#followers = Array.from({ length: this.config.num_replicas - 1 }, () => new Follower(this.store));
    if (this.#followers.length === 0) return;
    this.store.onChange = change => {
      const atMs = this.#host.clock.nowMs();
      for (const follower of this.#followers) follower.repeatLater(atMs, change);
    };
  }

  takes(subject: string): boolean {
    return this.#subjects.some(pattern => pattern.matches(subject));
  }

  /** Stores a message unless its headers or the limits forbid it, and answers. */
  publish(subject: string, reply: string, received: HeaderBlock, payload: Buffer): void {
    const header = withoutStatus(received);
    const { name } = this.config;
    let answer: string;
    let stored: StoredMessage | undefined;
    try {
      const duplicate = this.#checked(subject, header, payload);
      if (duplicate !== undefined) answer = `{"stream":${JSON.stringify(name)},"seq":${duplicate},"duplicate": true}`;
      else {
        stored = this.#stored(subject, header, payload);
        answer = `{"stream":${JSON.stringify(name)},"seq":${stored.seq}}`;
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      answer = JSON.stringify({ error, stream: name, seq: 0 });
    }
    if (reply !== '') this.#host.send(reply, '', '', Buffer.from(answer));
    if (stored !== undefined) for (const consumer of [...this.consumers.values()]) consumer.onStored(stored);
  }

  /** Throws if the message is refused; returns the sequence of a message with the same id. The order is that of nats-server 2.15. */
  #checked(subject: string, header: HeaderBlock, payload: Buffer): number | undefined {
    const { name, max_msg_size } = this.config;
    if (max_msg_size >= 0 && header.length + payload.length > max_msg_size)
      throw new ApiError(400, 10054, 'message size exceeds maximum allowed');
    if (header.length > HEADER_BYTES_MAX) throw new ApiError(400, 10097, 'header size exceeds maximum allowed of 64k');
    if (header === '') return undefined;
    const expectedStream = headerOf(header, 'Nats-Expected-Stream');
    if (expectedStream !== '' && expectedStream !== name) throw new ApiError(400, 10060, 'expected stream does not match');
    if (headerOf(header, 'Nats-TTL') !== '') throw new ApiError(400, 10166, 'per-message TTL is disabled');
    const ofSubject = headerOf(header, 'Nats-Expected-Last-Subject-Sequence');
    if (ofSubject !== '') {
      const last = this.store.last(headerOf(header, 'Nats-Expected-Last-Subject-Sequence-Subject') || subject)?.seq ?? 0;
      if (last !== Number(ofSubject)) throw wrongLastSequence(last);
    }
    const ofStream = headerOf(header, 'Nats-Expected-Last-Sequence');
    if (ofStream !== '' && Number(ofStream) !== this.store.lastSeq) throw wrongLastSequence(this.store.lastSeq);
    const duplicate = this.#duplicateOf(headerOf(header, 'Nats-Msg-Id'));
    if (duplicate !== undefined) return duplicate;
    const lastId = headerOf(header, 'Nats-Expected-Last-Msg-Id');
    if (lastId !== '' && lastId !== this.#lastId) throw new ApiError(400, 10070, `wrong last msg ID: ${this.#lastId}`);
    if (headerOf(header, 'Nats-Rollup') !== '') throw new ApiError(500, 10111, 'rollup not permitted');
    return undefined;
  }

  #duplicateOf(id: string): number | undefined {
    const windowMs = msOf(this.config.duplicate_window);
    const nowMs = this.#host.clock.nowMs();
    for (const [old, { atMs }] of this.#ids) {
      if (nowMs - atMs < windowMs) break;
      this.#ids.delete(old);
      this.#forgottenIds.add(old);
    }
    return this.#ids.get(id)?.seq;
  }

  #stored(subject: string, header: HeaderBlock, payload: Buffer): StoredMessage {
    const { store } = this;
    const to = republished(this.config, subject);
    const before = to === undefined ? 0 : (store.last(subject)?.seq ?? 0);
    this.#refuseIfFull(subject, header, payload);
    const id = headerOf(header, 'Nats-Msg-Id');
    const nowMs = this.#host.clock.nowMs();
    const message = store.add(subject, header, payload, nowMs);
    const { seq } = message;
    this.#lastId = id;
    if (id !== '') this.#ids.set(id, { seq, atMs: nowMs });
    if (this.#forgottenIds.has(id)) this.#host.onStoredAgain();
    this.#enforceLimits(subject);
    this.#setExpiry();
    if (to !== undefined) {
      const described = {
        'Nats-Stream': this.config.name,
        'Nats-Subject': subject,
        'Nats-Sequence': seq,
        'Nats-Time-Stamp': goTime(nowMs),
        'Nats-Last-Sequence': before,
      };
      this.#host.send(to, '', withHeaders(header, described), payload);
    }
    return message;
  }

  /** A full stream that discards new messages refuses them, except for a message that replaces an older one of its subject. */
  #refuseIfFull(subject: string, header: HeaderBlock, payload: Buffer): void {
    const { discard, max_msgs, max_bytes, max_msgs_per_subject, discard_new_per_subject } = this.config;
    if (this.isFull) throw storeFailed('maximum bytes exceeded');
    if (discard !== 'new') return;
    const { store } = this;
    const count = store.counts(subject).get(subject) ?? 0;
    const replaces = max_msgs_per_subject > 0 && count + 1 > max_msgs_per_subject;
    if (replaces && discard_new_per_subject) throw storeFailed('maximum messages per subject exceeded');
    if (max_msgs > 0 && store.count >= max_msgs && !replaces) throw storeFailed('maximum messages exceeded');
    const bytes = storedBytes(subject, header, payload);
    if (max_bytes <= 0 || store.bytes + bytes <= max_bytes) return;
    const oldest = replaces ? store.get(store.firstSeqOf(subject)!)! : undefined;
    if (oldest === undefined || storedBytes(subject, oldest.header, oldest.payload) < bytes)
      throw storeFailed('maximum bytes exceeded');
  }

  #enforceLimits(subject: string): void {
    const { max_msgs_per_subject, max_msgs, max_bytes, discard } = this.config;
    const { store } = this;
    const countOf = () => store.counts(subject).get(subject) ?? 0;
    while (max_msgs_per_subject > 0 && countOf() > max_msgs_per_subject) this.remove(store.firstSeqOf(subject)!);
    // A stream that refuses new messages keeps the stored ones even if its limit is lowered.
    if (discard === 'new') return;
    while (max_msgs > 0 && store.count > max_msgs) this.remove(store.firstSeq);
    while (max_bytes > 0 && store.bytes > max_bytes && store.count > 0) this.remove(store.firstSeq);
  }

  #setExpiry(): void {
    const first = this.store.first();
    const { max_age } = this.config;
    this.#expiry.set(first === undefined || max_age === 0 ? Number.POSITIVE_INFINITY : first.storedAtMs + msOf(max_age));
  }

  #expire(): void {
    if (this.config.max_age === 0) return;
    const before = this.#host.clock.nowMs() - msOf(this.config.max_age);
    for (let first = this.store.first(); first !== undefined && first.storedAtMs <= before; first = this.store.first())
      this.remove(first.seq);
    this.#setExpiry();
  }

  /** Removes a message, which its consumers then do not deliver or wait for any more. */
  remove(seq: number): void {
    const message = this.store.remove(seq);
    if (message !== undefined) for (const consumer of [...this.consumers.values()]) consumer.onRemoved(message);
  }

  /** Returns the number of removed messages. */
  purge({ filter = '', seq = 0, keep = 0 }: PurgeRequest): number {
    const { store } = this;
    const before = store.count;
    if (seq !== 1) {
      const ofAll = filter === '' || filter === '>';
      const seqs = [...store.matchingSeqs(filter || '>')].sort((a, b) => a - b);
      const removed = seq > 1 ? seqs.filter(one => one < seq) : keep > 0 ? seqs.slice(0, -keep) : seqs;
      for (const one of removed) store.remove(one);
      const isWhole = ofAll && (keep === 0 || seq > 1);
      // nats-server reports one removed message to the consumers that match the purge, several as a count (PurgeEx in filestore.go).
      if (removed.length === 1 && !isWhole)
        for (const consumer of [...this.consumers.values()]) consumer.onPurgedOne(removed[0]!, filter || '>');
      if (ofAll && seq > store.lastSeq + 1) store.skipTo(seq - 1);
    }
    const purged = before - store.count;
    for (const consumer of this.consumers.values()) {
      if (purged > 0) consumer.recount();
      consumer.onPurged(filter);
    }
    this.#setExpiry();
    return purged;
  }

  update(config: StreamConfig): void {
    this.config = config;
    this.#subjects = patternsOf(config);
    const { store } = this;
    for (const subject of config.max_msgs_per_subject > 0 ? store.counts('>').keys() : []) this.#enforceLimits(subject);
    this.#enforceLimits('');
    this.#setExpiry();
    this.#expire();
  }

  addConsumer(config: ConsumerConfig): Consumer {
    const others = [...this.consumers.values()].map(({ config }) => config);
    const { max_consumers } = this.config;
    if (max_consumers > 0 && others.length >= max_consumers) throw new ApiError(400, 10026, 'maximum consumers limit reached');
    checkForStream(config, this.config, others);
    const consumer = new Consumer(this.#host, this, config);
    this.consumers.set(config.name, consumer);
    consumer.start();
    return consumer;
  }

  /** Throws if nats-server does not allow the change. */
  updateConsumer(consumer: Consumer, config: ConsumerConfig): void {
    const others = [...this.consumers.values()].filter(other => other !== consumer).map(other => other.config);
    if (this.config.retention === 'workqueue') checkUnique(config, others);
    consumer.update(config);
  }

  /** Whether a consumer still has to acknowledge a message of a work queue. */
  isWanted(message: StoredMessage): boolean {
    return [...this.consumers.values()].some(consumer => consumer.wants(message));
  }

  close(): void {
    this.#expiry.stop();
    for (const consumer of [...this.consumers.values()]) consumer.close();
  }

  info({
    subjectsFilter = '',
    store = this.store,
  }: {
    subjectsFilter?: string;
    store?: MessageStore;
  } = {}): Record<string, unknown> {
    const first = store.first();
    const deleted = store.lastSeq === 0 ? 0 : store.lastSeq - store.firstSeq + 1 - store.count;
    const subjects = subjectsFilter ? store.counts(subjectsFilter) : new Map<string, number>();
    return {
      config: this.answeredConfig(),
      created: goTime(this.createdAtMs),
      state: {
        messages: store.count,
        bytes: store.bytes,
        first_seq: store.firstSeq,
        first_ts: goTime(first?.storedAtMs),
        last_seq: store.lastSeq,
        last_ts: goTime(store.lastStoredAtMs),
        ...(store.subjectCount > 0 && { num_subjects: store.subjectCount }),
        ...(subjects.size > 0 && { subjects: Object.fromEntries(subjects) }),
        ...(deleted > 0 && { num_deleted: deleted }),
        consumer_count: this.consumers.size,
      },
      ts: goTime(this.#host.clock.nowMs()),
    };
  }

  answeredConfig(): StreamConfig {
    return { ...this.config, metadata: answeredMetadata(this.config.metadata) };
  }
}

function patternsOf({ subjects }: StreamConfig): Pattern[] {
  return subjects.map(subject => new Pattern(subject));
}

function wrongLastSequence(last: number): ApiError {
  return new ApiError(400, 10071, `wrong last sequence: ${last}`);
}

function storeFailed(reason: string): ApiError {
  return new ApiError(503, 10077, reason);
}

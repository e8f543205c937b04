import { backoffMs, type LiveRecord, type StoredFacts, type Tail } from '@hopline/log';
import type { Msg } from '@nats-io/nats-core';
import { headersOf } from '../message-headers.ts';
import { pause } from '../retry.ts';
import { FEED_NUMBER, FEED_TASK, TEXT_AFTER } from './answers.ts';
import { FEED_HEARTBEAT_MS, FEED_KEEP_MS, type FeedNews } from './feeds.ts';
import type { ReadClient } from './read-client.ts';
import { FOLLOWS_PER_REQUEST_MAX, type FollowedTask } from './requests.ts';

/** A feed without a message for this long is lost: either its relay is dead, or the path to it is cut. */
const SILENCE_MS_MAX = 3_500;
/** A feed without tasks is kept for this long, because the agent's next turn often follows soon. */
const IDLE_MS_MAX = 10_000;
const REOPEN_MS_BASE = 100;
const REOPEN_MS_MAX = 2_000;

export type Follower = {
  task: string;
  after: number;
  skipsText: boolean;
  onLive: (live: LiveRecord) => void;
  /** Records may have been missed. */
  onMissed: () => void;
  /** `textAfter`: as in LiveRecord. */
  toLive: (msg: Msg, textAfter: number | undefined) => LiveRecord | undefined;
  /** Present while the task's newest record is to be reported. */
  watch?: { onTail: (tail: Tail) => void; onLost: () => void } | undefined;
};

/**
 * A task that is followed. `isFollowed` resolves when the relay sends its records, and rejects when the log is closed. `watch` makes the
 * relay report the newest record until the returned function is called.
 */
export type Followed = {
  isFollowed: Promise<void>;
  leave: () => void;
  watch: (onTails: NonNullable<Follower['watch']>) => () => void;
};

/** One feed at one relay. `reader`: known once the relay has answered. */
type Feed = { inbox: string; reader: string | undefined; received: number; receivedAtMs: number; end: () => void };

/**
 * The tasks that this process follows, through one feed of one relay. The messages of a feed are numbered and arrive at least every second,
 * so a lost one is noticed. If the relay is gone, another relay opens a feed with the same tasks, and each follower looks up its newest
 * record.
 */
export class FollowedTasks {
  readonly #client: ReadClient;
  readonly #followers = new Map<number, Follower>();
  /** Followers that the relay of the feed does not know yet. */
  #unsent = new Set<number>();
  #feed: Feed | undefined;
  #opening: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #n = 0;
  #idleSinceMs = 0;
  #keptAtMs = 0;

  constructor(client: ReadClient) {
    this.#client = client;
    client.connection.closed.addEventListener('abort', () => this.#stop(), { once: true });
  }

  add(follower: Follower): Followed {
    const n = ++this.#n;
    this.#followers.set(n, follower);
    this.#unsent.add(n);
    this.#timer ??= setInterval(() => this.#onTimer(), FEED_HEARTBEAT_MS).unref();
    return {
      isFollowed: this.#sendUntilKnown(n),
      leave: () => this.#leave(n),
      watch: onTails => this.#watch(n, follower, onTails),
    };
  }

  #watch(n: number, follower: Follower, watch: NonNullable<Follower['watch']>): () => void {
    follower.watch = watch;
    if (this.#followers.has(n)) this.#unsent.add(n);
    this.#send().catch(() => {});
    return () => {
      if (follower.watch === watch) follower.watch = undefined;
    };
  }

  async #sendUntilKnown(n: number): Promise<void> {
    while (this.#unsent.has(n) && this.#followers.has(n)) await this.#send();
  }

  /** Opens a feed if there is none, and sends its relay the followers that the relay does not know. Never rejects while the log is open. */
  async #send(): Promise<void> {
    this.#opening ??= this.#sendAll().finally(() => {
      this.#opening = undefined;
    });
    await this.#opening;
  }

  async #sendAll(): Promise<void> {
    const { connection } = this.#client;
    // All followers of one turn of the event loop share a request.
    await Promise.resolve();
    for (let failures = 0; this.#unsent.size > 0; ) {
      connection.requireOpen();
      try {
        const feed = this.#feed ?? (await this.#open(failures));
        await this.#sendTo(feed, failures);
        failures = 0;
      } catch {
        this.#lose();
        failures += 1;
        await pause(connection, backoffMs(failures, REOPEN_MS_BASE, REOPEN_MS_MAX), connection.closed);
      }
    }
  }

  async #open(failures: number): Promise<Feed> {
    const { connection } = this.#client;
    const inbox = connection.createInbox();
    const nowMs = performance.now();
    const feed: Feed = { inbox, reader: undefined, received: 0, receivedAtMs: nowMs, end: () => {} };
    const subscription = connection.subscribe(
      inbox,
      msg => this.#onMsg(feed, msg),
      () => this.#lose(feed),
    );
    feed.end = () => subscription.unsubscribe();
    try {
      const { end } = await this.#client.askOnce({ op: 'open', feed: inbox }, { failures });
      feed.reader = end.reader;
    } catch (error) {
      feed.end();
      throw error;
    }
    feed.receivedAtMs = performance.now();
    this.#keptAtMs = feed.receivedAtMs;
    this.#feed = feed;
    return feed;
  }

  async #sendTo(feed: Feed, failures: number): Promise<void> {
    const some = [...this.#unsent].slice(0, FOLLOWS_PER_REQUEST_MAX);
    const tasks = some.flatMap((n): FollowedTask[] => {
      const follower = this.#followers.get(n);
      if (follower === undefined) return [];
      const { task, after, skipsText, watch } = follower;
      return [{ n, task, after, ...(skipsText && { skipsText }), ...(watch && { watch: true as const }) }];
    });
    // A follower that ends or starts to watch in the meantime is sent again.
    for (const n of some) this.#unsent.delete(n);
    try {
      const request = { op: 'follow', feed: feed.inbox, tasks } as const;
      const { end } = await this.#client.askOnce(request, { reader: feed.reader, failures });
      if (end.isUnknown) throw new Error('the relay does not know the feed');
    } catch (error) {
      for (const n of some) if (this.#followers.has(n)) this.#unsent.add(n);
      throw error;
    }
    for (const { n } of tasks) if (!this.#followers.has(n)) this.#sendLeave(feed, n);
  }

  #leave(n: number): void {
    if (!this.#followers.delete(n)) return;
    const wasUnsent = this.#unsent.delete(n);
    if (!wasUnsent && this.#feed !== undefined) this.#sendLeave(this.#feed, n);
    if (this.#followers.size === 0) this.#idleSinceMs = performance.now();
  }

  #sendLeave(feed: Feed, n: number): void {
    if (feed.reader !== undefined) this.#client.send({ op: 'leave', feed: feed.inbox, n }, feed.reader);
  }

  #onMsg(feed: Feed, msg: Msg): void {
    if (feed !== this.#feed) return;
    feed.receivedAtMs = performance.now();
    const headers = headersOf(msg);
    const number = Number(headers?.get(FEED_NUMBER));
    if (!(number > 0)) return;
    if (number !== feed.received + 1) this.#missed();
    feed.received = number;
    const n = Number(headers?.get(FEED_TASK));
    if (!(n > 0)) {
      this.#onNews(feed, msg.json<FeedNews>());
      return;
    }
    const follower = this.#followers.get(n);
    if (follower === undefined) return;
    const textAfter = Number(headers?.get(TEXT_AFTER));
    const live = follower.toLive(msg, textAfter > 0 ? textAfter : undefined);
    if (live === undefined) return;
    follower.after = Math.max(follower.after, live.seq);
    follower.onLive(live);
  }

  #onNews(feed: Feed, { passed = [], tails = [], unwatched = [], missed, over }: FeedNews): void {
    for (const [n, textAfter, last, seq] of passed) {
      const follower = this.#followers.get(n);
      if (follower === undefined) continue;
      follower.after = Math.max(follower.after, seq);
      follower.onLive(new PassedText(seq, last, textAfter));
    }
    for (const [n, seq, startSeq, id] of tails)
      this.#followers.get(n)?.watch?.onTail({ seq, startSeq, ...(id !== undefined && { id }) });
    for (const n of unwatched) this.#followers.get(n)?.watch?.onLost();
    if (missed) this.#missed();
    if (over) this.#lose(feed);
  }

  #missed(): void {
    for (const follower of [...this.#followers.values()]) follower.onMissed();
  }

  #onTimer(): void {
    const nowMs = performance.now();
    const feed = this.#feed;
    if (this.#followers.size === 0 && nowMs - this.#idleSinceMs >= IDLE_MS_MAX) this.#stop();
    else if (feed?.reader === undefined) return;
    else if (nowMs - feed.receivedAtMs >= SILENCE_MS_MAX) this.#lose(feed);
    else if (nowMs - this.#keptAtMs >= FEED_KEEP_MS) {
      this.#keptAtMs = nowMs;
      this.#client.send({ op: 'keep', feed: feed.inbox }, feed.reader);
    }
  }

  /** The feed is lost. All followers look up their newest records when another relay has a feed for them. */
  #lose(feed = this.#feed): void {
    if (feed === undefined || feed !== this.#feed) return;
    feed.end();
    this.#feed = undefined;
    for (const [n, follower] of this.#followers) {
      this.#unsent.add(n);
      follower.watch?.onLost();
    }
    if (this.#followers.size === 0 || this.#client.connection.closed.aborted) return;
    void this.#send().then(
      () => this.#missed(),
      () => {},
    );
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#feed?.end();
    this.#feed = undefined;
  }
}

/** The newest record that only continued text. The relay sends nothing more about such records. */
class PassedText implements LiveRecord {
  readonly seq: number;
  readonly last: number;
  readonly textAfter: number;
  readonly bytes = 0;
  readonly continuesText = true;

  constructor(seq: number, last: number, textAfter: number) {
    this.seq = seq;
    this.last = last;
    this.textAfter = textAfter;
  }

  decode(): StoredFacts | undefined {
    return undefined;
  }

  id(): string | undefined {
    return undefined;
  }
}

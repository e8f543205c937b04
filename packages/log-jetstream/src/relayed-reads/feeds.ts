import type { FollowSource } from '@hopline/log';
import { headers as natsHeaders } from '@nats-io/nats-core';
import type { Connection } from '../connection.ts';
import type { JetStreamFacts } from '../facts.ts';
import type { JetStreamLive } from '../live-record.ts';
import { headersOf } from '../message-headers.ts';
import { type AnswerEnd, copyOf, FEED_NUMBER, FEED_TASK, TEXT_AFTER } from './answers.ts';
import type { ReadRights } from './read-rights.ts';
import type { FeedRequest, FollowedTask } from './requests.ts';

/** Interval of the messages that show an agent that its feed is whole. */
export const FEED_HEARTBEAT_MS = 1_000;
/** An agent keeps its feed at least this often. */
export const FEED_KEEP_MS = 5_000;
/** A feed that its agent has not renewed for this long belongs to an agent that is gone. */
const KEPT_MS_MAX = 15_000;
/** Number of feeds of one agent in one relay: one for each of its processes, and those of processes that are gone. */
const FEEDS_PER_AGENT_MAX = 256;

/**
 * A message of a feed that is not a record.
 * - `passed`: for each task number `textAfter`, `last` and `seq` (LiveRecord) of the newest record that only continues text.
 * - `tails`: the newest records of tasks that are watched, read from the leader.
 * - `missed`: records of any task may be missed until its newest record is looked up.
 * - `unwatched`: numbers of tasks whose `tails` have ended.
 * - `over`: the relay stops.
 */
export type FeedNews = {
  passed?: [n: number, textAfter: number, last: number, seq: number][];
  tails?: [n: number, seq: number, startSeq: number, id?: string][];
  missed?: true;
  unwatched?: number[];
  over?: true;
};

/** `agentTasksMax`: tasks in the feeds of one agent. */
type FeedsDeps = {
  connection: Connection;
  facts: JetStreamFacts;
  rights: ReadRights;
  reader: string;
  agentTasksMax: number;
};

/** The feeds of agents in one relay. A feed contains the live records of the tasks that an agent follows. */
export class Feeds {
  readonly #deps: FeedsDeps;
  readonly #feeds = new Map<string, Feed>();
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: FeedsDeps) {
    this.#deps = deps;
    deps.connection.onReconnect(() => {
      for (const feed of this.#feeds.values()) feed.send({ missed: true });
    });
    deps.connection.closed.addEventListener('abort', () => this.close(), { once: true });
  }

  get reader(): string {
    return this.#deps.reader;
  }

  async handle(agent: string, request: FeedRequest | { op: 'open'; feed: string }): Promise<AnswerEnd> {
    const { reader } = this.#deps;
    if (request.op === 'open') return this.#open(agent, request.feed) ? { reader } : { error: 'the agent has too many feeds' };
    const feed = this.#feeds.get(request.feed);
    if (feed === undefined || feed.agent !== agent) return { isUnknown: true };
    feed.keptUntilMs = performance.now() + KEPT_MS_MAX;
    if (request.op === 'leave') feed.leave(request.n);
    if (request.op !== 'follow') return {};
    if (this.#tasksOf(agent) + feed.added(request.tasks) > this.#deps.agentTasksMax)
      return { error: 'the agent follows too many tasks' };
    await feed.follow(request.tasks);
    return { reader };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const feed of this.#feeds.values()) {
      feed.send({ over: true });
      feed.close();
    }
    this.#feeds.clear();
  }

  #open(agent: string, inbox: string): boolean {
    if (this.#feeds.has(inbox)) return true;
    let count = 0;
    for (const feed of this.#feeds.values()) if (feed.agent === agent) count += 1;
    if (count >= FEEDS_PER_AGENT_MAX) return false;
    const feed = new Feed(this.#deps, agent, inbox);
    feed.keptUntilMs = performance.now() + KEPT_MS_MAX;
    this.#feeds.set(inbox, feed);
    this.#timer ??= setInterval(() => this.#onTimer(), FEED_HEARTBEAT_MS).unref();
    return true;
  }

  #tasksOf(agent: string): number {
    let count = 0;
    for (const feed of this.#feeds.values()) if (feed.agent === agent) count += feed.size;
    return count;
  }

  #onTimer(): void {
    for (const [inbox, feed] of this.#feeds) {
      if (performance.now() < feed.keptUntilMs) feed.heartbeat();
      else {
        feed.close();
        this.#feeds.delete(inbox);
      }
    }
    if (this.#feeds.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

type Follow = {
  task: string;
  source: Omit<FollowSource, 'subscribe'>;
  skipsText: boolean;
  /** Sequence of the last record that the agent knows; 0 if it knows none. */
  shown: number;
  /** The newest record after it, if all records after it only continue text. */
  passed: { last: number; seq: number } | undefined;
  /** The agent may read the task. Until this is known, the task's records are not sent. */
  isPermitted: boolean;
  end: () => void;
  stopTail?: (() => void) | undefined;
};

class Feed {
  readonly agent: string;
  keptUntilMs = 0;
  readonly #deps: FeedsDeps;
  readonly #inbox: string;
  readonly #follows = new Map<number, Follow>();
  #sent = 0;

  constructor(deps: FeedsDeps, agent: string, inbox: string) {
    this.#deps = deps;
    this.agent = agent;
    this.#inbox = inbox;
  }

  get size(): number {
    return this.#follows.size;
  }

  /** How many of the tasks are not in the feed yet. */
  added(tasks: readonly FollowedTask[]): number {
    return tasks.filter(({ n }) => !this.#follows.has(n)).length;
  }

  /** Resolves when the server has the subscriptions. */
  async follow(tasks: readonly FollowedTask[]): Promise<void> {
    await Promise.all(tasks.map(task => this.#follow(task)));
    for (const { n, watch } of tasks) if (watch) this.#watch(n);
    await this.#deps.connection.nc.flush();
  }

  async #follow({ n, task, after, skipsText }: FollowedTask): Promise<void> {
    if (this.#follows.has(n)) return;
    const { facts, rights } = this.#deps;
    const source = facts.sourceOf(task);
    const follow: Follow = {
      task,
      source,
      skipsText: skipsText === true,
      shown: after,
      passed: undefined,
      isPermitted: false,
      end: () => {},
    };
    this.#follows.set(n, follow);
    // Looked up first. Records that arrive before the answer need not be sent, because the agent then looks up what it has missed.
    follow.isPermitted = rights.isKnown(this.agent, task) || (await rights.mayRead(this.agent, task));
    if (this.#follows.get(n) !== follow) return;
    follow.end = facts.onLive(
      task,
      live => this.#onLive(n, follow, live),
      () => this.#end(n),
    );
  }

  leave(n: number): void {
    this.#end(n);
  }

  send(news: FeedNews): void {
    const headers = natsHeaders();
    headers.set(FEED_NUMBER, `${++this.#sent}`);
    this.#deps.connection.sendBytes(this.#inbox, Buffer.from(JSON.stringify(news)), headers);
  }

  /** Shows that nothing was lost. */
  heartbeat(): void {
    const passed: NonNullable<FeedNews['passed']> = [];
    for (const [n, follow] of this.#follows) {
      if (follow.passed === undefined) continue;
      const { last, seq } = follow.passed;
      passed.push([n, follow.shown, last, seq]);
      follow.shown = seq;
      follow.passed = undefined;
    }
    this.send(passed.length > 0 ? { passed } : {});
  }

  close(): void {
    for (const n of [...this.#follows.keys()]) this.#end(n);
  }

  #end(n: number): void {
    const follow = this.#follows.get(n);
    if (follow === undefined) return;
    this.#follows.delete(n);
    follow.end();
    follow.stopTail?.();
  }

  #onLive(n: number, follow: Follow, live: JetStreamLive): void {
    if (!follow.isPermitted && !this.#becomesPermitted(follow, live)) return;
    const { seq, last } = live;
    const { shown, passed } = follow;
    if (follow.skipsText && live.continuesText && last > 0 && last === (passed?.seq ?? shown) && seq > last) {
      follow.passed = { last, seq };
      return;
    }
    const headers = copyOf(headersOf(live.msg));
    headers.set(FEED_NUMBER, `${++this.#sent}`);
    headers.set(FEED_TASK, `${n}`);
    if (passed !== undefined && last === passed.seq) headers.set(TEXT_AFTER, `${shown}`);
    follow.shown = seq;
    follow.passed = undefined;
    this.#deps.connection.sendBytes(this.#inbox, live.msg.data, headers);
  }

  /**
   * The log had no record of the task, or none that names the agent. The new record itself decides, because reading the log for each record
   * would cost too much.
   */
  #becomesPermitted(follow: Follow, live: JetStreamLive): boolean {
    const { rights } = this.#deps;
    const aggregate = live.decode()?.record.aggregate;
    follow.isPermitted = aggregate !== undefined && rights.permits(this.agent, aggregate);
    return follow.isPermitted;
  }

  #watch(n: number): void {
    const follow = this.#follows.get(n);
    if (follow === undefined || follow.stopTail !== undefined) return;
    follow.stopTail = follow.source.pushTail?.(
      ({ seq, startSeq, id }) => {
        if (follow.isPermitted || this.#deps.rights.isKnown(this.agent, follow.task))
          this.send({ tails: [[n, seq, startSeq, ...(id === undefined ? ([] as const) : ([id] as const))]] });
      },
      () => this.send({ unwatched: [n] }),
    );
  }
}

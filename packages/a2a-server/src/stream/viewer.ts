import { A2AError, isTerminal } from '@hopline/a2a';
import { formatCursor } from '@hopline/events';
import type { FactLog } from '@hopline/log';
import type { TaskFeed } from '../feed/task-feed.ts';
import type { VisibleEntry } from '../feed/visible-entry.ts';
import type { Limits } from '../limits.ts';
import { fromLog } from '../log-faults.ts';
import type { EventSink } from './event-sink.ts';
import { readVisible } from './read-visible.ts';

/** A client that was told to come back waits this long, and up to twice as long; milliseconds. */
const RECONNECT_MS = 500;

export type ViewerOptions = {
  sink: EventSink;
  facts: FactLog;
  limits: Limits;
  /** The stream also ends where the client has to answer: true for message streams, false for subscriptions ([A2A 1.0] 11.7). */
  endsAtInputRequired: boolean;
  onEntry(entry: VisibleEntry): void;
  onCut(reason: 'slow_viewer'): void;
};

/**
 * One client's place in a task: what it has seen, and what comes next. Newest facts come from the feed's ring, older ones from the log; the ring is the only buffer.
 * A client that does not keep up is cut and comes back with its cursor.
 */
export class Viewer {
  readonly #options: ViewerOptions;
  readonly #sink: EventSink;
  #feed: TaskFeed | undefined;
  #unlisten = () => {};
  /** Generation of the next event. */
  #next = 1;
  /** Log sequence at which to look for it. */
  #hint = 0;
  #snapshotDue = false;
  /** Something else writes: the snapshot is on its way, or the log is read. */
  #busy = false;

  constructor(options: ViewerOptions) {
    this.#options = options;
    this.#sink = options.sink;
    this.#sink.onClose(() => this.#stop());
  }

  /** Everything after a generation, without a snapshot. `hint`: where that generation may be; not trusted. */
  follow(feed: TaskFeed, after: { generation: number; seq: number }): void {
    this.#next = after.generation + 1;
    this.#hint = after.seq;
    this.#attach(feed);
    this.#pump();
  }

  /** The task as it is now, then everything that follows. */
  followFromSnapshot(feed: TaskFeed): void {
    this.#attach(feed);
    this.#hold(this.#sendSnapshot(feed));
  }

  /**
   * The task as it is after the record that is being folded, then everything that follows. For a message on a task that had asked: the record that takes the
   * message also sets the task to work, and no client may see the old question again and stop.
   */
  followFromThisRecord(feed: TaskFeed): void {
    this.#snapshotDue = true;
    this.#attach(feed);
  }

  fail(error: A2AError): void {
    this.#stop();
    this.#sink.fail(error);
  }

  /** Not only an end: a client cannot tell that from success. */
  drain(): void {
    this.#stop();
    const error = new A2AError('UNAVAILABLE', { detail: 'this server is shutting down; continue with Last-Event-ID' });
    this.#sink.drain(error, Math.round(RECONNECT_MS * (1 + Math.random())));
  }

  #attach(feed: TaskFeed): void {
    this.#feed = feed;
    this.#unlisten = feed.listen({ onRecord: () => this.#onRecord(feed), onFault: fault => this.fail(fault) });
    if (feed.fault !== undefined) this.fail(feed.fault);
  }

  #onRecord(feed: TaskFeed): void {
    if (!this.#snapshotDue) {
      this.#pump();
      return;
    }
    this.#snapshotDue = false;
    this.#hold(this.#sendSnapshot(feed));
  }

  #stop(): void {
    this.#unlisten();
    this.#feed = undefined;
  }

  /** Writes all that the ring has. Everything of one record goes out in one write. */
  #pump(): void {
    const feed = this.#feed;
    if (feed?.view === undefined || this.#busy || this.#sink.closed) return;
    if (this.#sink.backlog > this.#options.limits.viewerBufferBytesMax) {
      this.#cut();
      return;
    }
    while (this.#next <= feed.view.generation) {
      const entry = feed.ring.at(this.#next);
      if (entry === undefined) {
        this.#sink.flush();
        this.#hold(this.#catchUp(feed));
        return;
      }
      this.#take(entry, feed);
      if (this.#endsAt(entry)) {
        this.#end();
        return;
      }
    }
    if (feed.ended) this.#end();
    else this.#sink.flush();
  }

  /** Runs while nothing else may write, then goes on with what has come meanwhile. */
  #hold(writing: Promise<void>): void {
    this.#busy = true;
    writing.then(
      () => {
        this.#busy = false;
        this.#pump();
      },
      thrown => this.fail(A2AError.from(fromLog(thrown, this.#feed?.taskId))),
    );
  }

  /** Reads what the ring has no more, as fast as the client takes it, until the ring has the next one. */
  async #catchUp(feed: TaskFeed): Promise<void> {
    let from = Math.max(feed.first, Math.min(this.#hint, feed.seq));
    if (!(await this.#readFrom(feed, from)) && from > feed.first) {
      // The hint was wrong: it lay after the event.
      from = feed.first;
      await this.#readFrom(feed, from);
    }
    if (
      this.#feed !== undefined &&
      feed.view !== undefined &&
      this.#next <= feed.view.generation &&
      feed.ring.at(this.#next) === undefined
    ) {
      await this.#gap(feed, feed.view.generation);
    }
  }

  /** Resolves with false when nothing was found, or something later than the next event. */
  async #readFrom(feed: TaskFeed, from: number): Promise<boolean> {
    let found = false;
    for await (const { entry, seq } of readVisible(this.#options.facts, feed.taskId, from)) {
      if (this.#feed === undefined) return true;
      if (entry.generation < this.#next) continue;
      if (entry.generation > this.#next) {
        if (!found && from > feed.first) return false;
        await this.#gap(feed, entry.generation - 1);
        return true;
      }
      found = true;
      this.#hint = seq;
      this.#take(entry, feed);
      if (this.#endsAt(entry)) {
        this.#end();
        return true;
      }
      if (!(await this.#flushAll())) return true;
      if (feed.ring.at(this.#next) !== undefined) return true;
    }
    return found;
  }

  /** Retention has removed what the client should see next: say so, then say how things are. */
  async #gap(feed: TaskFeed, to: number): Promise<void> {
    this.#sink.addGap({ from: this.#next, to });
    await this.#sendSnapshot(feed);
  }

  async #sendSnapshot(feed: TaskFeed): Promise<void> {
    const view = feed.view;
    if (view === undefined) return;
    this.#next = view.generation + 1;
    this.#hint = feed.seq;
    const { task, generation } = view;
    this.#sink.addSnapshot(task, formatCursor({ generation, seq: feed.seq }), generation);
    const sent = await this.#flushAll();
    if (sent && this.#options.endsAtInputRequired && view.task.status.state === 'TASK_STATE_INPUT_REQUIRED') this.#end();
  }

  #take(entry: VisibleEntry, feed: TaskFeed): void {
    this.#next = entry.generation + 1;
    this.#options.onEntry(entry);
    this.#sink.addEvent(entry, feed.artifactIndex);
  }

  #endsAt(entry: VisibleEntry): boolean {
    if (entry.fact.kind !== 'status.changed') return false;
    const { state } = entry.fact.event.statusUpdate.status;
    return isTerminal(state) || (this.#options.endsAtInputRequired && state === 'TASK_STATE_INPUT_REQUIRED');
  }

  async #flushAll(): Promise<boolean> {
    const sent = await this.#sink.flushAll(this.#options.limits.viewerStallMsMax);
    if (!sent && !this.#sink.closed) this.#cut();
    return sent;
  }

  #end(): void {
    this.#stop();
    this.#sink.end();
  }

  #cut(): void {
    this.#stop();
    this.#options.onCut('slow_viewer');
    this.#sink.cut();
  }
}

import { A2AError, type A2AErrorCode, isTerminal } from '@hopline/a2a';
import { formatCursor, isVisible } from '@hopline/events';
import { type FactLog, fromStart } from '@hopline/log';
import { LINE } from '@hopline/telemetry';
import type { A2AServer } from '../a2a-server.ts';
import type { FeedListener } from '../feed/feed-listener.ts';
import type { ReadView, TaskFeed, ViewAt } from '../feed/task-feed.ts';
import { VisibleEntry } from '../feed/visible-entry.ts';

import { fromLog } from '../log-faults.ts';
import { taskTooLarge } from '../operations/task-response.ts';
import type { SentBudget } from '../quotas/sent-budget.ts';
import type { DeliveryMeter } from './delivery-meter.ts';
import type { EventSink } from './event-sink.ts';
import { withHistory } from './history-length.ts';
import type { OpenStream } from './open-streams.ts';

/** Delay before a drained client reconnects; a random time of up to the same length is added. */
const RECONNECT_MS = 500;

/** `ended`: the turn or the task ended. */
export type StreamEnd = 'ended' | 'drain' | 'slow_viewer' | A2AErrorCode;

type ViewerOptions = {
  sink: EventSink;
  meter: DeliveryMeter;
  /** Undefined: no limit. */
  budget: SentBudget | undefined;
  /** The stream also ends at INPUT_REQUIRED: true for message streams, false for subscriptions ([A2A 1.0] 11.7). */
  endsAtInputRequired: boolean;
  /** Snapshots have a timeline. */
  showsTimeline: boolean;
  /** Newest messages of the history in the task. Undefined: all. */
  historyLength?: number | undefined;
};

/**
 * One client's position in a task: what it has seen and what comes next. Recent facts come from the feed's ring, older ones from the log;
 * the ring is the only buffer. A client that does not keep up is disconnected and resumes with its cursor. The class itself implements the
 * listener and the open stream, because closures would double the memory of an idle viewer.
 */
export class Viewer implements FeedListener, OpenStream {
  readonly #server: A2AServer;
  readonly #sink: EventSink;
  readonly #meter: DeliveryMeter;
  readonly #budget: SentBudget | undefined;
  readonly #endsAtInputRequired: boolean;
  readonly #showsTimeline: boolean;
  readonly #historyLength: number | undefined;
  /** Bytes of `sink.written` that the budget has already counted. */
  #spent = 0;
  #feed: TaskFeed | undefined;
  /** Generation that the next event must have. An event that names its predecessor may have a later one. */
  #next = 1;
  /** Log sequence from which to read that event. */
  #hint = 0;
  /** When the newest record whose events the client has received was stored, in epoch milliseconds; undefined before the first. */
  #storedAt: number | undefined;
  /** The record that is being folded adds this message, and a snapshot must be sent when it has been folded. */
  #addedMessage: string | undefined;
  /** The client may have received events that the log has lost. */
  #gapDue = false;
  /** A snapshot is being written, the log is being read, or the caller is beyond its budget. */
  #busy = false;
  /** How the server ended the stream; undefined while it is open, and after the client left. */
  outcome: StreamEnd | undefined;

  constructor(server: A2AServer, options: ViewerOptions) {
    const { sink, meter, budget, endsAtInputRequired, showsTimeline, historyLength } = options;
    this.#server = server;
    this.#sink = sink;
    this.#meter = meter;
    this.#budget = budget;
    this.#endsAtInputRequired = endsAtInputRequired;
    this.#showsTimeline = showsTimeline;
    this.#historyLength = historyLength;
  }

  /** Sends everything after a generation, without a snapshot. `seq` is only a hint of where that generation is. */
  follow(feed: TaskFeed, after: { generation: number; seq: number }): void {
    this.#next = after.generation + 1;
    this.#hint = after.seq;
    this.#attach(feed);
    this.#pump();
  }

  /** Sends the task as it is now, then everything that follows. A task that is too large for one event is sent as all of its events. */
  followFromSnapshot(feed: TaskFeed): void {
    this.#attach(feed);
    this.#exclusively(this.#sendSnapshot(feed, 'first'));
  }

  /**
   * Sends the task after the record that is being folded, which adds the message, then everything that follows. Used for a message to a
   * task that required input: the record also sets the task to work, so the client does not read the old INPUT_REQUIRED and stop.
   */
  followFromThisRecord(feed: TaskFeed, messageId: string): void {
    this.#addedMessage = messageId;
    this.#attach(feed);
  }

  /**
   * Sends the task as it was after one of its messages, then everything that followed. So if a client sends a message again, the new stream
   * has the whole turn, like the first one. If the record of the message has expired, sends the task as it is.
   */
  followFromMessage(feed: TaskFeed, messageId: string): void {
    this.#attach(feed);
    this.#exclusively(this.#sendSnapshot(feed, 'message', messageId));
  }

  keepAlive(): void {
    this.#sink.keepAlive();
  }

  get neededSince(): number | undefined {
    return this.#feed !== undefined && this.#next <= this.#feed.generation ? this.#storedAt : undefined;
  }

  // FeedListener: called by the feed.

  onFault(fault: A2AError): void {
    this.#failBy(fault);
  }

  onReset(): void {
    this.#gapDue = this.#addedMessage === undefined;
    this.onRecord();
  }

  onRecord(): void {
    const feed = this.#feed;
    const messageId = this.#addedMessage;
    if (feed === undefined || messageId === undefined) {
      this.#pump();
      return;
    }
    this.#addedMessage = undefined;
    // A view in memory is the state after this record. By the time the log is read, it may have more records.
    const isOfThisRecord = feed.holdsView && !this.#showsTimeline;
    this.#exclusively(this.#sendSnapshot(feed, 'message', isOfThisRecord ? undefined : messageId));
  }

  fail(error: A2AError): void {
    this.stop();
    this.outcome ??= error.code;
    this.#sink.fail(error);
  }

  /** Ends with an error, because a plain end would look like success. */
  drain(): void {
    this.stop();
    this.outcome ??= 'drain';
    const error = new A2AError('UNAVAILABLE', { detail: 'this server is shutting down; reconnect with Last-Event-ID' });
    this.#sink.drain(error, Math.round(RECONNECT_MS * (1 + Math.random())));
  }

  cut(): void {
    this.#sink.cut();
  }

  /** Stops following the task. */
  stop(): void {
    this.#feed?.unlisten(this);
    this.#feed = undefined;
  }

  #attach(feed: TaskFeed): void {
    // The client left while the feed was opening. Nothing else would stop this viewer, and the feed may live for a long time.
    if (this.#sink.closed) return;
    this.#feed = feed;
    this.#sink.follows?.({ generation: feed.generation, seq: feed.lastSeq, ended: feed.ended });
    feed.listen(this);
    if (feed.fault !== undefined) this.fail(feed.fault);
  }

  /**
   * Writes everything that the ring has, the events of one record in one write. Never throws, because the feed calls it for each of its
   * viewers.
   */
  #pump(): void {
    const feed = this.#feed;
    if (feed === undefined || this.#busy || this.#sink.closed) return;
    try {
      this.#writeRing(feed);
    } catch (thrown) {
      this.#failBy(thrown);
    }
  }

  #writeRing(feed: TaskFeed): void {
    if (this.#sink.backlog > this.#server.limits.viewerBufferBytesMax) {
      this.#cutSlow();
      return;
    }
    if (this.#gapDue) {
      this.#gapDue = false;
      this.#flush();
      this.#exclusively(this.#gap(feed, Math.max(this.#next, feed.generation)));
      return;
    }
    while (this.#next <= feed.generation) {
      const entry = feed.ring.after(this.#next - 1);
      if (entry === undefined) {
        this.#flush();
        this.#exclusively(this.#catchUp(feed));
        return;
      }
      this.#emit(entry, feed);
      if (this.#endsAt(entry)) {
        this.#end();
        return;
      }
    }
    if (feed.ended) this.#end();
    else {
      this.#flush();
      if (this.#spend() > 0) this.#exclusively(this.#pace());
    }
  }

  /** Runs `writing` while nothing else writes, and then continues with what arrived in the meantime. */
  #exclusively(writing: Promise<void>): void {
    this.#busy = true;
    writing.then(
      () => {
        this.#busy = false;
        this.#pump();
      },
      thrown => this.#failBy(thrown),
    );
  }

  #failBy(thrown: unknown): void {
    const error = A2AError.from(fromLog(thrown, this.#feed?.taskId));
    if (error.code === 'INTERNAL_ERROR') this.#server.logger.error({ code: error.code, err: error.cause }, 'stream failed');
    this.fail(error);
  }

  /** Reads events that the ring no longer has from the log, at the pace of the client, until the ring has the next event. */
  async #catchUp(feed: TaskFeed): Promise<void> {
    const before = this.#next;
    const from = Math.max(feed.startSeq, Math.min(this.#hint, feed.lastSeq));
    // The hint was wrong and pointed past the event, so the read starts again from the beginning.
    if (!(await this.#readFrom(feed, from)) && from > feed.startSeq) await this.#readFrom(feed, feed.startSeq);
    // Events that are still missing after a successful read were stored since it began, so the next read finds them.
    if (this.#feed === undefined || this.#next > before) return;
    if (this.#next <= feed.generation && feed.ring.after(this.#next - 1) === undefined) await this.#gap(feed, feed.generation);
  }

  /** Resolves with false if it finds no event, or only one later than the next event. */
  async #readFrom(feed: TaskFeed, from: number): Promise<boolean> {
    let found = false;
    for await (const { entry, seq, storedAt } of readVisible(this.#server.log.facts, feed, from)) {
      if (this.#feed === undefined) return true;
      if (entry.generation < this.#next) continue;
      if (!entry.follows(this.#next - 1)) {
        if (!found && from > feed.startSeq) return false;
        await this.#gap(feed, entry.generation - 1);
        return true;
      }
      found = true;
      this.#hint = seq;
      this.#storedAt = storedAt;
      this.#emit(entry, feed);
      if (this.#endsAt(entry)) {
        this.#end();
        return true;
      }
      if (!(await this.#flushAll())) return true;
      if (feed.ring.after(this.#next - 1) !== undefined) return true;
    }
    return found;
  }

  /** Retention removed the next events, or the log lost some: sends the gap and then a snapshot. */
  async #gap(feed: TaskFeed, to: number): Promise<void> {
    this.#server.metrics?.gaps.add(1);
    this.#meter.gap();
    this.#sink.addGap({ from: this.#next, to });
    await this.#sendSnapshot(feed, 'gap');
  }

  /** With `messageId`, sends the task as it was as soon as it had this message. */
  async #sendSnapshot(feed: TaskFeed, place: 'first' | 'message' | 'gap', messageId?: string): Promise<void> {
    const { task, generation, seq, bytes, isTooLarge } = await this.#readTask(feed, messageId);
    if (this.#feed === undefined) return;
    const isLarge = bytes > this.#server.limits.snapshotBytesMax;
    // Nothing has been sent yet, so all events of the task follow.
    if (isLarge && place === 'first') return;
    if (isTooLarge && place === 'gap') throw taskTooLarge(this.#server, task.id);
    // The client of a message knows the artifacts of earlier turns, or can get them. Later ones are sent as events.
    if (isLarge && place === 'message') delete task.artifacts;
    this.#next = generation + 1;
    this.#hint = seq;
    this.#sink.addSnapshot(withHistory(task, this.#historyLength), formatCursor({ generation, seq }), generation);
    const sent = await this.#flushAll();
    if (sent && this.#endsAtInputRequired && task.status.state === 'TASK_STATE_INPUT_REQUIRED') this.#end();
  }

  async #readTask(feed: TaskFeed, messageId: string | undefined): Promise<ReadView & Omit<ViewAt, 'view'>> {
    if (!this.#showsTimeline && messageId === undefined) {
      const { view, ...at } = await feed.readView();
      return { ...view, ...at, task: { ...view.task } };
    }
    const { view, timeline, ...at } = await feed.readHistory(messageId);
    if (!this.#showsTimeline) return { ...view, ...at };
    return { ...view, ...at, task: timeline.addTo(view.task, this.#server.limits.timelineEntriesMax) };
  }

  #emit(entry: VisibleEntry, feed: TaskFeed): void {
    this.#next = entry.generation + 1;
    this.#storedAt = entry.live?.storedAt ?? this.#storedAt;
    this.#meter.add(entry, feed);
    const { fact, cursor, generation } = entry;
    // A created task has one message. Its timeline is made from it.
    if (fact.kind === 'task.created' && this.#historyLength === 0 && !this.#showsTimeline)
      this.#sink.addSnapshot(withHistory(fact.event.task, 0), cursor, generation);
    else this.#sink.addEvent(entry, feed.artifactIndex);
  }

  #endsAt(entry: VisibleEntry): boolean {
    if (entry.fact.kind !== 'status.changed') return false;
    const { state } = entry.fact.event.statusUpdate.status;
    return isTerminal(state) || (this.#endsAtInputRequired && state === 'TASK_STATE_INPUT_REQUIRED');
  }

  async #flushAll(): Promise<boolean> {
    const sent = await this.#sink.flushAll(this.#server.limits.viewerStallMsMax);
    this.#meter.written();
    if (!sent && !this.#sink.closed) this.#cutSlow();
    else if (this.#spend() > 0) await this.#pace();
    return sent && this.#feed !== undefined;
  }

  /** Counts the written bytes. Returns the delay before the next write in milliseconds. */
  #spend(): number {
    if (this.#budget === undefined) return 0;
    const bytes = this.#sink.written - this.#spent;
    this.#spent = this.#sink.written;
    return this.#budget.spend(bytes, performance.now());
  }

  /** Waits until the caller is within its budget or the stream ends. Events stored during the wait are read afterwards. */
  async #pace(): Promise<void> {
    await this.#budget?.pace(() => this.#feed === undefined || this.#sink.closed);
  }

  #flush(): void {
    this.#sink.flush();
    this.#meter.written();
  }

  #end(): void {
    this.stop();
    this.outcome ??= 'ended';
    this.#sink.end();
    this.#spend();
    this.#meter.written();
  }

  #cutSlow(): void {
    this.stop();
    this.outcome ??= 'slow_viewer';
    this.#server.logger.info({ reason: 'slow_viewer', bytes: this.#sink.backlog }, LINE.streamCut);
    this.#sink.cut();
  }
}

/**
 * The visible facts of a task from log sequence `from` to the newest, with the sequence of their records. A task that is copied forward at
 * `from` includes its earlier facts.
 */
async function* readVisible(
  facts: FactLog,
  feed: TaskFeed,
  from: number,
): AsyncGenerator<{ entry: VisibleEntry; seq: number; storedAt: number | undefined }> {
  const { taskId, aggregate } = feed;
  for await (const { seq, record, storedAt } of fromStart(facts.read(taskId, from, aggregate?.owner))) {
    for (const fact of record.facts) if (isVisible(fact)) yield { entry: new VisibleEntry(fact, seq), seq, storedAt };
  }
}

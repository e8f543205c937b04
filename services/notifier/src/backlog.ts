import { type DialectName, isTerminal } from '@hopline/a2a';
import { eventOf, type Fact, isSameOwner, isVisible, type Owner, type VisibleFact } from '@hopline/events';
import { type FactLog, fromStart, type StoredFacts, startSeqOf } from '@hopline/log';
import { projectRecord, type TaskView } from '@hopline/task';
import { merged, type Pending } from './pending.ts';
import { FORMS } from './webhook-body.ts';

/** Events that wait for one slow webhook, bytes: beyond it the log is read no further. More than one merged delivery, so that the next one is there when it is wanted. */
export const BACKLOG_BYTES_MAX = 256 * 1024;
/** Counted for an event beside its content, bytes. */
const EVENT_BYTES = 512;

export type BacklogStart = {
  taskId: string;
  dialect: DialectName;
  /** What was delivered: up to this generation, which stood in the record of this sequence (0: not known). */
  generation: number;
  seq: number;
  /** Whose webhook it is: absent, nobody's. */
  owner?: Owner | undefined;
};

/** What a task has to tell one webhook: read ahead of it from the log, bounded, in order. */
export class Backlog {
  readonly #start: BacklogStart;
  readonly #facts: FactLog;
  readonly #signal: AbortSignal;
  readonly #artifacts = new Map<string, number>();
  #events: Pending[] = [];
  #bytes = 0;
  #view: TaskView | undefined;
  #ended = false;
  #foreign = false;
  #fault: unknown;
  #changed = Promise.withResolvers<void>();

  constructor(facts: FactLog, start: BacklogStart, signal: AbortSignal) {
    this.#facts = facts;
    this.#start = start;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#notify(), { once: true });
    this.#read().then(
      () => this.#notify(),
      fault => {
        this.#fault = fault;
        this.#notify();
      },
    );
  }

  /**
   * Resolves when there is something to take: everything up to generation `upTo`, where that is given. `ended`: the task is over, and everything was taken.
   * `foreign`: the task is somebody else's. `quiet`: nothing came for `quietMs`. `stopped`: the signal aborted. Rejects with LogUnavailable.
   */
  async ready(upTo: number | undefined, quietMs: number): Promise<'ready' | 'ended' | 'foreign' | 'quiet' | 'stopped'> {
    const until = performance.now() + quietMs;
    for (;;) {
      if (this.#fault !== undefined) throw this.#fault;
      if (this.#signal.aborted) return 'stopped';
      if (this.#foreign) return 'foreign';
      const newest = this.#events.at(-1)?.generation ?? 0;
      if (this.#events.length > 0 && (upTo === undefined || newest >= upTo || this.#full || this.#ended)) return 'ready';
      if (this.#ended) return 'ended';
      const leftMs = until - performance.now();
      if (leftMs <= 0) return 'quiet';
      await this.#changeWithin(leftMs);
    }
  }

  /** The next delivery: up to generation `upTo` where that is given, else as much as may be told as one; undefined when nothing waits. */
  take(upTo?: number): Pending | undefined {
    const [oldest] = this.#events;
    if (oldest === undefined) return undefined;
    let taken: Pending = oldest;
    let count = 1;
    for (const next of this.#events.slice(1)) {
      const both = upTo !== undefined && next.generation > upTo ? undefined : merged(taken, next);
      if (both === undefined) break;
      taken = both;
      count += 1;
    }
    for (const gone of this.#events.splice(0, count)) this.#bytes -= gone.bytes;
    this.#notify();
    return taken;
  }

  get #full(): boolean {
    return this.#bytes >= BACKLOG_BYTES_MAX;
  }

  async #read(): Promise<void> {
    const { taskId, dialect, seq } = this.#start;
    const last = await this.#facts.last(taskId);
    const before = last === undefined ? 0 : startSeqOf(last) - 1;
    const after = FORMS[dialect].needsHistory ? before : Math.max(before, seq - 1);
    for await (const stored of fromStart(await this.#facts.follow(taskId, after, this.#signal))) {
      // A client that makes its own task ids may have asked before there was a task (S3-23), and the task become another client's.
      this.#foreign = !isSameOwner(this.#start.owner, stored.record.aggregate.owner);
      if (this.#foreign) return;
      this.#add(stored);
      this.#ended = isTerminal(stored.record.aggregate.state);
      this.#notify();
      if (this.#ended) return;
      while (this.#full && !this.#signal.aborted) await this.#changed.promise;
    }
  }

  #add(stored: StoredFacts): void {
    const { record } = stored;
    const add = (fact: Fact, view?: TaskView) => {
      if (!isVisible(fact)) return;
      const artifactIndex = this.#indexOf(fact);
      if (fact.generation <= this.#start.generation) return;
      const pending = pendingOf(fact, stored, view, artifactIndex);
      this.#events.push(pending);
      this.#bytes += pending.bytes;
    };
    if (FORMS[this.#start.dialect].tells === 'task')
      this.#view = projectRecord(this.#view, record, (view, fact) => add(fact, view));
    else for (const fact of record.facts) add(fact);
  }

  #indexOf(fact: VisibleFact): number | undefined {
    if (fact.kind !== 'artifact.updated') return undefined;
    const { artifactId } = fact.event.artifactUpdate.artifact;
    const known = this.#artifacts.get(artifactId);
    if (known !== undefined) return known;
    this.#artifacts.set(artifactId, this.#artifacts.size);
    return this.#artifacts.size - 1;
  }

  #notify(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }

  async #changeWithin(ms: number): Promise<void> {
    const { promise } = this.#changed;
    // Through #notify: a promise that was resolved must not be waited for again, or the loop that does never lets a timer run.
    const timer = setTimeout(() => this.#notify(), ms);
    await promise;
    clearTimeout(timer);
  }
}

function pendingOf(
  fact: VisibleFact,
  { seq, trace }: StoredFacts,
  view: TaskView | undefined,
  artifactIndex: number | undefined,
): Pending {
  const event = eventOf(fact);
  const state = 'statusUpdate' in event ? event.statusUpdate.status.state : undefined;
  return {
    event,
    generation: fact.generation,
    seq,
    count: 1,
    at: fact.at,
    trace,
    lastTrace: trace,
    task: view?.task,
    artifactIndex,
    bytes: EVENT_BYTES + contentBytes(event),
    terminal: state !== undefined && isTerminal(state),
  };
}

function contentBytes(event: ReturnType<typeof eventOf>): number {
  return 'artifactUpdate' in event ? JSON.stringify(event.artifactUpdate.artifact.parts).length : JSON.stringify(event).length;
}

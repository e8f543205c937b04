import { codePoints, isTerminal } from '@hopline/a2a';
import type { AgentRecord, CopyForwardInput, Fact, FactRecord, TaskAggregate } from '@hopline/events';
import { RecordTooLarge, type StoredFacts, type StoredInput, startSeqOf } from '@hopline/log';
import { type Command, decide, evolve, type RejectionReason } from '@hopline/task';
import { AppendQueue, type Queued } from './append-queue.ts';
import { CheckpointBarriers } from './checkpoint-barriers.ts';
import { copyForward, type TaskStart } from './copy-forward.ts';
import { InputLedger } from './input-ledger.ts';
import { alreadyFolded, OrdinalDeduplicator } from './ordinal-deduplicator.ts';
import type { PipelineContext, StoredStep } from './pipeline-context.ts';
import { TaskHop } from './task-hop.ts';
import { TaskText } from './task-text.ts';
import { failTooLarge, isTooLargeNote } from './too-large.ts';

/** Text of one record, UTF-16 units: large enough that a burst is one append, far below the log's record limit. */
const RECORD_TEXT_UNITS_MAX = 128 * 1024;

type Step = { facts: Fact[]; aggregate: TaskAggregate | undefined };

/**
 * One task in the relay: inputs in, facts out, one append in flight. It holds nothing that the log does not: a new pipeline made from the
 * newest record continues where this one stopped, and an append of the old one fails from then on.
 */
export class TaskPipeline {
  readonly taskId: string;
  readonly #context: PipelineContext;
  readonly #hop: TaskHop;
  readonly #admission: OrdinalDeduplicator;
  readonly #books: InputLedger;
  readonly #text: TaskText;
  readonly #queue = new AppendQueue();
  readonly #holds = new CheckpointBarriers();
  #aggregate: TaskAggregate | undefined;
  #newest: number;
  #begins: TaskStart | undefined;
  #lastSeq: number;
  #indexed = false;
  #appending = false;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;
  /** Epoch milliseconds of the last input; the shard evicts what is idle. */
  touchedAt: number;

  constructor(taskId: string, newest: StoredFacts | undefined, context: PipelineContext) {
    this.taskId = taskId;
    this.#context = context;
    this.#aggregate = newest?.record.aggregate;
    this.#newest = newest?.seq ?? 0;
    this.#begins = newest && { startSeq: startSeqOf(newest), startStoredAt: newest.record.startStoredAt };
    this.#lastSeq = this.#aggregate?.foldedSeq ?? 0;
    this.#hop = new TaskHop(taskId);
    this.#admission = new OrdinalDeduplicator(this.#aggregate);
    this.#books = new InputLedger(context.counted);
    this.#text = new TaskText(context.coalesce, (run, chunk) => {
      this.#hop.chunk(chunk.count, codePoints(chunk.text), chunk.heldMs);
      context.chunked(chunk, run.from.agent);
      this.#queue.pushRun(run, RECORD_TEXT_UNITS_MAX);
    });
    this.touchedAt = context.now();
  }

  get aggregate(): TaskAggregate | undefined {
    return this.#aggregate;
  }

  /** UTF-16 units waiting for an append. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Nothing held, nothing waiting, no side effect under way. */
  get idle(): boolean {
    return this.#oldest() === undefined;
  }

  /** Every raw record of the task up to this sequence is folded in, side effects included. */
  get settled(): number {
    return (this.#oldest() ?? this.#lastSeq + 1) - 1;
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#hop.end();
    this.#books.close();
  }

  /** Takes the next input of the task, in raw order. */
  accept(input: StoredInput): void {
    this.touchedAt = this.#context.now();
    this.#hop.input(input);
    if (input.seq <= this.#lastSeq) {
      this.#again(input);
      return;
    }
    this.#lastSeq = input.seq;
    const { record } = input;
    if (record.from === 'client' || record.from === 'relay') {
      const item = record.from === 'relay' ? record.input : { kind: 'client' as const, taskId: this.taskId, input: record.input };
      if (this.#interrupts(item)) this.#text.closeAll(this.#context.now());
      this.#books.take(record.input.kind);
      this.#queue.push(item, input.seq);
    } else {
      this.#acceptAgent(record, input);
    }
    this.#due();
  }

  /** What changes nothing (a question that was answered, a message said twice, a carry) does not part a surrogate pair whose other half is on its way. */
  #interrupts(item: Command): boolean {
    return item.kind !== 'copy-forward' && decide(this.#aggregate, item, this.#context.now()).rejected === undefined;
  }

  #due(): void {
    const isOver = this.#aggregate !== undefined && isTerminal(this.#aggregate.state);
    this.#text.due(this.#context.now(), isOver);
    this.#schedule();
    this.#pump();
  }

  /** An input that is folded in already is read again after a takeover: its side effects may not have happened. The task index is written once for all of them. */
  #again({ record, seq }: StoredInput): void {
    const aggregate = this.#aggregate;
    if (aggregate === undefined) return;
    const message = record.from === 'client' && record.input.kind === 'message' ? record.input : undefined;
    if (message === undefined && this.#indexed) return;
    this.#indexed = true;
    this.#stored({ facts: [], aggregate, again: { ...(message && { message }) } }, seq);
  }

  #acceptAgent(record: AgentRecord, stored: StoredInput): void {
    const admitted = this.#admission.before(record);
    if (admitted === 'stale') {
      this.#dropped('stale attempt', this.#books.dropRecord(record));
      return;
    }
    if (this.#admission.misses(record)) {
      this.#text.closeAll(this.#context.now());
      this.#queue.push({ kind: 'lost', from: record.from }, stored.seq);
    }
    let n = record.n;
    for (const input of record.inputs) {
      if (input.kind === 'text') {
        const known = alreadyFolded(record, input, n, admitted, this.#aggregate);
        this.#books.take('text', input.tokens.length);
        this.#books.settle('text', 'repeated', known.tokens);
        this.#text.offer(record, input, n, known, stored, this.#context.now());
        n += input.tokens.length;
        continue;
      }
      this.#books.take(input.kind);
      if (n <= admitted.n) this.#books.settle(input.kind, 'repeated');
      else {
        this.#text.flushFor(record.from, input, this.#context.now());
        const mark = { from: record.from, n };
        const closed = input.kind === 'close' && this.#queue.closeWithRun(record.from, input.lane, mark);
        if (closed) this.#books.settle('close', 'accepted');
        else this.#queue.push({ kind: 'agent', from: record.from, input }, stored.seq, mark);
      }
      n++;
    }
    this.#admission.admit(record, n - 1, admitted);
  }

  /** A real timer runs whenever text is held: a stalled source never hides its tail. */
  #schedule(): void {
    clearTimeout(this.#timer);
    const { wakeAt } = this.#text;
    if (wakeAt === undefined || this.#stopped) return;
    this.#timer = setTimeout(() => this.#due(), Math.max(0, wakeAt - this.#context.now()));
  }

  #pump(): void {
    if (this.#appending || this.#stopped || this.#queue.length === 0) return;
    this.#appending = true;
    this.#drain().then(
      () => {
        this.#appending = false;
        // An input may have come between the last look at the queue and now, or the task have ended while text was held.
        if (!this.#stopped) this.#due();
      },
      error => {
        this.stop();
        this.#context.failed(error);
      },
    );
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0 && !this.#stopped) {
      const taken = this.#queue.take(RECORD_TEXT_UNITS_MAX);
      const oldest = Math.min(...taken.map(queued => queued.firstSeq));
      this.#holds.hold(oldest);
      await this.#append(this.#decide(taken), oldest);
      for (const { item } of taken) if (item.kind === 'copy-forward') await this.#carry(item, oldest);
      this.#holds.release(oldest);
    }
  }

  async #append({ facts, aggregate }: Step, oldest: number): Promise<void> {
    if (facts.length === 0 || aggregate === undefined) {
      this.#aggregate = aggregate;
      return;
    }
    const settled = { ...aggregate, foldedSeq: Math.max(aggregate.foldedSeq, (this.#unfolded() ?? this.#lastSeq + 1) - 1) };
    const begins = this.#begins ?? { startSeq: 0, startStoredAt: settled.at };
    try {
      await this.#store({ v: 1, facts, aggregate: settled, ...begins });
    } catch (error) {
      if (!(error instanceof RecordTooLarge) || isTooLargeNote(facts)) throw error;
      // A task whose first record the log does not take never begins. Doors refuse such a message; another writer's must not hold up the shard.
      if (this.#aggregate === undefined) this.#dropped('too large', facts.length);
      else await this.#append(failTooLarge(this.#aggregate, this.#context.now()), oldest);
      return;
    }
    const events = settled.generation - (this.#aggregate?.generation ?? 0);
    this.#aggregate = settled;
    this.#begins ??= { ...begins, startSeq: this.#newest };
    this.#stored({ facts, aggregate: settled }, oldest);
    this.#hop.stored(settled, events);
  }

  async #store(record: FactRecord): Promise<number> {
    const options = { expected: this.#newest, id: this.#context.appendId(this.taskId), trace: this.#hop.carrier() };
    const { seq } = await this.#context.facts.append(record, options);
    this.#newest = seq;
    return seq;
  }

  /**
   * A beginning that was carried forward already: then another relay did it, and this input was read again. The index may not know of it: that relay died, and without it the next carry is never due.
   */
  async #carry({ startStoredAt: since }: CopyForwardInput, oldest: number): Promise<void> {
    const [aggregate, begins] = [this.#aggregate, this.#begins];
    if (aggregate === undefined || begins === undefined || isTerminal(aggregate.state)) return;
    if (begins.startStoredAt === since) {
      const newest: StoredFacts = { seq: this.#newest, record: { v: 1, facts: [], aggregate, ...begins } };
      const at = Math.round(this.#context.now());
      const append = (record: FactRecord) => (this.#stopped ? undefined : this.#store(record));
      const carried = await copyForward(this.#context.facts, newest, at, append);
      if (carried === 'stopped') return;
      if (carried === 'tooLarge') this.#dropped('too large', 1);
      this.#begins = carried === 'tooLarge' ? { ...begins, startStoredAt: at } : carried;
    }
    this.#stored({ facts: [], aggregate, again: {} }, oldest);
  }

  #decide(taken: Queued[]): Step {
    let aggregate = this.#aggregate;
    const facts: Fact[] = [];
    for (const { item, mark } of taken) {
      const decision = decide(aggregate, item, this.#context.now());
      this.#books.decided(item, decision.rejected !== undefined);
      if (decision.rejected !== undefined) this.#dropped(decision.rejected, item.kind === 'run' ? item.chunk.count : 1);
      for (const fact of decision.facts) {
        facts.push(fact);
        aggregate = evolve(aggregate, fact);
      }
      if (mark !== undefined && aggregate !== undefined && mark.from.turn === aggregate.turn) {
        const { id, attempt } = mark.from;
        aggregate = { ...aggregate, producers: { ...aggregate.producers, [id]: { attempt, n: mark.n } } };
      }
    }
    return { facts, aggregate };
  }

  #dropped(reason: RejectionReason, count: number): void {
    this.#hop.dropped(count);
    this.#context.dropped(reason, count);
  }

  /** What follows from a stored step. Holds the shard's checkpoint below `seq` until it has happened. */
  #stored(step: Pick<StoredStep, 'facts' | 'aggregate' | 'again'>, seq: number): void {
    const effect = this.#context.stored({ ...step, ...this.#begins! }, this.#hop.carrier());
    if (effect === undefined) return;
    this.#holds.hold(seq);
    effect.then(
      () => this.#holds.release(seq),
      error => {
        this.stop();
        this.#context.failed(error);
      },
    );
  }

  /** Raw sequence of the oldest record with something that waits, or is held, outside the append in flight. */
  #unfolded(): number | undefined {
    const { oldest } = this.#text;
    const queued = this.#queue.oldest;
    return oldest === undefined || (queued !== undefined && queued < oldest) ? queued : oldest;
  }

  #oldest(): number | undefined {
    return this.#holds.lowest(this.#unfolded());
  }
}

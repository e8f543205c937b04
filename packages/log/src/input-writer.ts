import { isDeepStrictEqual } from 'node:util';
import { cutIndex } from '@hopline/a2a';
import type { TextHold } from '@hopline/coalesce';
import {
  type AgentInput,
  type AgentRecord,
  type ModelTiming,
  ordinalsOf,
  type Producer,
  type TakenWork,
  type TextInput,
  type ToolTiming,
  type TraceCarrier,
} from '@hopline/events';
import { Superseded } from './errors.ts';
import type { InputLog } from './input-log.ts';
import { requireTaskId } from './names.ts';
import { readableBytes } from './readable-input.ts';
import type { TextPace } from './text-pace.ts';

type InputWriterOptions = {
  taskId: string;
  producer: Producer;
  /** Creation context of the inputs. */
  trace?: TraceCarrier;
  /** Added to the first record. */
  taken?: TakenWork;
  /** The rule by which text is held. Absent, or with an event cost of 0: text is sent at once, and the relay holds it. */
  pace?: TextPace;
  /** Bytes that may wait before `ready` blocks the source, default WRITER_WAITING_BYTES_MAX. */
  waitingBytesMax?: number;
  /** How long one append is retried, in milliseconds; default APPEND_TIMEOUT_MS. */
  timeoutMs?: number;
};

/** Number of ordinals in one record. A burst then needs few appends, and the relay folds one record in about 2 ms. */
export const RECORD_TOKENS_MAX = 2_048;
/**
 * UTF-8 bytes of inputs in one record. JSON escapes take at most 6 bytes for each byte, so a record of text stays below NATS's default
 * max_payload of 1 MiB.
 */
export const RECORD_INPUT_BYTES_MAX = 96 * 1024;
export const WRITER_WAITING_BYTES_MAX = 512 * 1024;
/** A record with this many tokens shows a burst, because they arrived within the time of one append. The next record is then held. */
export const BURST_TOKENS = 256;
/**
 * How long a record of a burst is held to fill up. Summed over all processes, a record costs as much CPU as a few hundred tokens, and a
 * screen redraws text only every 16 ms.
 */
export const BURST_HOLD_MS = 5;
/**
 * How long a writer retries one append. When it stops, its work item loses an attempt although the agent is alive, so this time is longer
 * than a frozen connection or the replacement of a server lasts. A retry after the duplicate window may store a record twice; relays fold
 * its ordinals once.
 */
export const APPEND_TIMEOUT_MS = 5 * 60_000;
/** If a source ignores `ready`, it fails when this many times waitingBytesMax are waiting. */
export const WAITING_OVERRUN_FACTOR = 16;
/** Bytes of a token in addition to its text: quotes, commas, its time. */
const TOKEN_OVERHEAD_BYTES = 12;

/** Maximum number of requests to models that one writer puts into its records. */
const MODEL_CALLS_MAX = 256;

type Draft = {
  at: number;
  n: number;
  inputs: AgentInput[];
  ordinals: number;
  bytes: number;
  tools: ToolTiming[];
  models: ModelTiming[];
  /** When the record must be sent because of an input that is not text, on the clock of holds. Text in the record has a time of its own. */
  leaveAtMs: number;
  hasText: boolean;
  /** How long the rule made the writer hold its oldest text; undefined without text or without a rule. */
  heldMs: number | undefined;
};
/** Tokens of a lane that arrived in one step. */
type Arrival = { lane: string; text: string; tokens: number };
type Waiter = { resolve: () => void; reject: (error: unknown) => void };

/**
 * The ordered publisher of one producer on one task (PROTOCOL.md section 3). At most one append is in flight; inputs that arrive in the
 * meantime become the next record. So an idle log receives a token at once, and a busy log receives larger records: with 4 tokens per
 * record the throughput is 3.5 times that of one token per record (measured). In a burst a record of text is held for BURST_HOLD_MS or
 * until it is full. Order across lanes and kinds is kept. After a failed append the writer appends nothing more, because it would be stored
 * out of order.
 *
 * With `pace` the writer holds text by the rule of the relay's coalescer and marks the record (`heldMs`), so that the relay passes the text
 * on at once. Each token is held only once, and where that saves the most: it saves both an input record and a fact record.
 */
export class InputWriter {
  readonly #inputs: InputLog;
  readonly #options: InputWriterOptions;
  readonly #waitingBytesMax: number;
  #nextN = 1;
  #storedN = 0;
  #lastSeq: number | undefined;
  #open: Draft | undefined;
  #sealed: Draft[] = [];
  /** Tool calls that ended while no record was waiting. */
  #tools: ToolTiming[] = [];
  /** Requests to models that ended while no record was waiting, and the total number so far. */
  #models: ModelTiming[] = [];
  #modelCalls = 0;
  #inFlight = false;
  #checkQueued = false;
  readonly #hold: TextHold | undefined;
  /**
   * Tokens of the open record that `#hold` does not know yet. Tokens that arrive during an append count as one arrival, as in the relay.
   */
  #arrivals: Arrival[] = [];
  /** Set while the open record is held. The timer fires when the record must be sent. */
  #timer: NodeJS.Timeout | undefined;
  #timerDueMs = 0;
  /** The open record is sent together with the text of other writers. */
  #isLeaving = false;
  /** The open record is the next one of a burst. */
  #isInBurst = false;
  #waitingBytes = 0;
  #failure: { error: unknown } | undefined;
  #flushing: (Waiter & { upTo: number })[] = [];
  #readying: Waiter[] = [];

  constructor(inputs: InputLog, options: InputWriterOptions) {
    requireTaskId(options.taskId);
    this.#inputs = inputs;
    this.#options = options;
    this.#waitingBytesMax = options.waitingBytesMax ?? WRITER_WAITING_BYTES_MAX;
    this.#hold = options.pace?.createHold();
  }

  /** Ordinal of the next input. */
  get nextN(): number {
    return this.#nextN;
  }

  /** Raw sequence of the newest stored record; undefined before the first. */
  get lastSeq(): number | undefined {
    return this.#lastSeq;
  }

  /** Whether `ready` would resolve at once. */
  get isReady(): boolean {
    return this.#failure === undefined && this.#waitingBytes < this.#waitingBytesMax;
  }

  /**
   * Takes an input. Throws the writer's error if the writer has failed. Throws InputUnreadable for an input that readers could not read;
   * the writer continues after that. `atMs`: source time in epoch milliseconds, now by default.
   */
  add(input: AgentInput, atMs = Date.now()): void {
    if (input.kind === 'text') {
      for (const [i, text] of input.tokens.entries()) this.token(input.lane, text, atMs + (input.dt?.[i] ?? 0), input.ids?.[i]);
      return;
    }
    const [draft, bytes] = this.#draftWith(input, atMs);
    draft.leaveAtMs = 0;
    if (input.kind === 'close') this.#hold?.close(input.lane);
    this.#count(draft, ordinalsOf(input), bytes);
    this.#queueCheck();
  }

  /**
   * Like `add`, for an input for which no reader waits. It is sent in the record of the next input, or by itself after `holdMs`, so that it
   * does not delay the next input by an append.
   */
  addHeld(input: Exclude<AgentInput, TextInput>, holdMs: number): void {
    const [draft, bytes] = this.#draftWith(input, Date.now());
    draft.leaveAtMs = Math.min(draft.leaveAtMs, performance.now() + holdMs);
    this.#count(draft, ordinalsOf(input), bytes);
    this.#queueCheck();
  }

  /** Takes one token of a lane; allocates nothing when it joins a waiting record. `id`: the source's message id. */
  token(lane: string, text: string, atMs = Date.now(), id?: string): void {
    const idBytes = id === undefined ? 0 : Buffer.byteLength(id);
    const textBytes = Buffer.byteLength(text);
    if (textBytes + idBytes + TOKEN_OVERHEAD_BYTES > RECORD_INPUT_BYTES_MAX) {
      // Only the first piece has the id: clients drop a second token of the same id as a duplicate (S0-22).
      let pieceId = id;
      for (const piece of splitOnCodePoints(text, PIECE_CHARS_MAX)) {
        this.#token(lane, piece, atMs, pieceId, Buffer.byteLength(piece) + (pieceId === undefined ? 0 : idBytes));
        pieceId = undefined;
      }
      return;
    }
    this.#token(lane, text, atMs, id, textBytes + idBytes);
  }

  /** Adds a finished tool call to the next record. Call it before adding the input that ends the call. */
  toolEnded(call: ToolTiming): void {
    (this.#open?.tools ?? this.#tools).push(call);
  }

  /** Adds a finished request to a model to the next record. Requests beyond MODEL_CALLS_MAX of an attempt are left out. */
  modelEnded(call: ModelTiming): void {
    this.#modelCalls += 1;
    if (this.#modelCalls <= MODEL_CALLS_MAX) (this.#open?.models ?? this.#models).push(call);
  }

  /** Resolves when less than `waitingBytesMax` is waiting. Await it before each read of the source. Rejects if the writer has failed. */
  ready(): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure.error);
    if (this.isReady) return Promise.resolve();
    return new Promise((resolve, reject) => this.#readying.push({ resolve, reject }));
  }

  /** Resolves when all inputs taken so far are stored. Rejects when the writer has failed. */
  flush(): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure.error);
    const upTo = this.#nextN - 1;
    if (upTo <= this.#storedN) return Promise.resolve();
    if (!this.#checkQueued) this.#pump();
    return new Promise((resolve, reject) => this.#flushing.push({ upTo, resolve, reject }));
  }

  #token(lane: string, text: string, atMs: number, id: string | undefined, ownBytes: number): void {
    const bytes = ownBytes + TOKEN_OVERHEAD_BYTES;
    const draft = this.#draftFor(bytes, atMs);
    const last = draft.inputs.at(-1);
    if (last?.kind === 'text' && last.lane === lane) {
      join(last, text, Math.max(0, atMs - draft.at), id);
    } else {
      const input: TextInput = { kind: 'text', lane, tokens: [] };
      draft.inputs.push(input);
      join(input, text, Math.max(0, atMs - draft.at), id);
    }
    draft.hasText = true;
    if (this.#hold !== undefined) this.#arrived(lane, text);
    this.#count(draft, 1, bytes);
    // A held record of a burst need not be checked at each token.
    if (!this.#isInBurst || this.#sealed.length > 0) this.#queueCheck();
  }

  #arrived(lane: string, text: string): void {
    const last = this.#arrivals.at(-1);
    if (last?.lane === lane) {
      last.text += text;
      last.tokens += 1;
    } else this.#arrivals.push({ lane, text, tokens: 1 });
  }

  /** Puts an input that is not text into the draft. Returns its bytes. */
  #draftWith(input: Exclude<AgentInput, TextInput>, atMs: number): [Draft, number] {
    const bytes = readableBytes(input);
    const draft = this.#draftFor(bytes, atMs);
    draft.inputs.push(input);
    return [draft, bytes];
  }

  /** The draft for the next input. Starts a new one when the open one is full. */
  #draftFor(bytes: number, atMs: number): Draft {
    if (this.#failure) throw this.#failure.error;
    if (this.#waitingBytes > this.#waitingBytesMax * WAITING_OVERRUN_FACTOR) {
      throw new RangeError('the input writer is full: the source must await ready() before it adds more');
    }
    const open = this.#open;
    if (open && open.ordinals < RECORD_TOKENS_MAX && open.bytes + bytes <= RECORD_INPUT_BYTES_MAX) return open;
    if (open) {
      this.#endHold(open, performance.now());
      this.#sealed.push(open);
    }
    const content = { inputs: [], ordinals: 0, bytes: 0, tools: this.#tools.splice(0), models: this.#models.splice(0) };
    this.#open = { at: atMs, n: this.#nextN, ...content, leaveAtMs: Number.POSITIVE_INFINITY, hasText: false, heldMs: undefined };
    return this.#open;
  }

  #count(draft: Draft, ordinals: number, bytes: number): void {
    draft.ordinals += ordinals;
    draft.bytes += bytes;
    this.#nextN += ordinals;
    this.#waitingBytes += bytes;
  }

  /** Checks at the end of this step whether the open record must be sent, unless another one is in flight. */
  #queueCheck(): void {
    if (this.#inFlight || this.#checkQueued) return;
    this.#checkQueued = true;
    const check = () => {
      this.#checkQueued = false;
      this.#check();
    };
    // Inputs of one step (the opening of a lane and its first token) share a record without a timer. The first record waits for one turn of
    // the event loop, so that the turn's state and an immediate plan take one append instead of two (0.9 ms of the 18 ms to the first
    // text).
    if (this.#storedN === 0) setImmediate(check);
    else queueMicrotask(check);
  }

  /** Sends the oldest record, or waits until the open one must be sent. */
  #check(): void {
    if (this.#inFlight || this.#failure) return;
    if (this.#sealed.length > 0) {
      this.#pump();
      return;
    }
    if (this.#open === undefined) return;
    const nowMs = performance.now();
    const dueMs = this.#dueMs(this.#open, nowMs);
    if (dueMs <= nowMs) {
      this.#leave(dueMs, nowMs);
      return;
    }
    if (this.#timer !== undefined && dueMs === this.#timerDueMs) return;
    clearTimeout(this.#timer);
    this.#timerDueMs = dueMs;
    this.#timer = setTimeout(() => this.#leave(dueMs, dueMs), dueMs - nowMs);
  }

  /** Sends the open record. Held text is sent together with that of other writers, a first text at once. */
  #leave(dueMs: number, nowMs: number): void {
    // If a record is sent early, its timer remains, and would send the next record too soon.
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { pace } = this.#options;
    if (pace === undefined || dueMs === 0 || this.#open?.hasText !== true) this.#pump();
    else if (!this.#isLeaving) {
      this.#isLeaving = true;
      pace.gather(() => {
        if (this.#isLeaving) this.#pump();
      }, nowMs);
    }
  }

  #dueMs({ leaveAtMs, hasText }: Draft, nowMs: number): number {
    // No text is held while a source waits for room or a caller waits for the record.
    if (leaveAtMs === 0 || this.#flushing.length > 0 || !this.isReady) return 0;
    if (this.#isInBurst && this.#timer !== undefined) return this.#timerDueMs;
    if (!hasText) return leaveAtMs;
    if (this.#hold === undefined) return 0;
    this.#offerArrivals(this.#hold, nowMs);
    return this.#hold.holdsFirst ? 0 : Math.min(leaveAtMs, this.#hold.dueMs);
  }

  #offerArrivals(hold: TextHold, nowMs: number): void {
    hold.setEventCost(this.#options.pace!.eventCostMs);
    for (const { lane, text, tokens } of this.#arrivals) hold.arrive(lane, text, tokens, nowMs);
    this.#arrivals = [];
  }

  /** The record takes all text that is held. */
  #endHold(draft: Draft, nowMs: number): void {
    if (this.#hold === undefined || !draft.hasText) return;
    this.#offerArrivals(this.#hold, nowMs);
    draft.heldMs = Math.round(nowMs - (this.#hold.sinceMs ?? nowMs));
    this.#hold.left(nowMs);
  }

  #pump(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isInBurst = false;
    this.#isLeaving = false;
    if (this.#inFlight || this.#failure) return;
    const draft = this.#sealed.shift() ?? this.#open;
    if (!draft) return;
    if (draft === this.#open) {
      this.#endHold(draft, performance.now());
      this.#open = undefined;
    }
    this.#inFlight = true;
    this.#append(draft).then(
      seq => this.#stored(draft, seq),
      error => this.#failed(error),
    );
  }

  async #append(draft: Draft): Promise<number> {
    const { taskId, producer, trace, taken, timeoutMs = APPEND_TIMEOUT_MS, pace } = this.#options;
    const { tools, models } = draft;
    const measured = {
      ...(taken && draft.n === 1 && { taken }),
      ...(tools.length > 0 && { tools }),
      ...(models.length > 0 && { models }),
    };
    const held = draft.heldMs === undefined ? {} : { heldMs: draft.heldMs };
    const record: AgentRecord = { v: 1, at: draft.at, from: producer, n: draft.n, inputs: draft.inputs, ...held, ...measured };
    // The id contains the turn and the work item, because a later turn, or another item of the same call, starts again with attempt 1 and n
    // 1 within the duplicate window.
    const { turn, item = 0, attempt } = producer;
    const id = `${taskId}:${producer.id}:${turn}:${item}:${attempt}:${draft.n}`;
    const startedMs = performance.now();
    const { seq, duplicate } = await this.#inputs.append(taskId, record, {
      id,
      timeoutMs,
      waitsForRoom: true,
      ...(trace && { trace }),
    });
    pace?.appended(startedMs, performance.now());
    if (duplicate && !(await this.#isStoredAt(seq, record))) throw new Superseded();
    return seq;
  }

  /**
   * Whether the stored record with this id was stored by an earlier try of this writer whose acknowledgement was lost. It may belong to
   * another writer: a killed nats-server may forget that it has delivered an item, and deliver it again with the same count. Two runs of
   * one attempt then write with the same ids, and only the first to write continues.
   */
  async #isStoredAt(seq: number, record: AgentRecord): Promise<boolean> {
    const stored = await this.#inputs.recordAt(this.#options.taskId, seq);
    // A missing record was removed by retention.
    return stored === undefined || isDeepStrictEqual(stored, JSON.parse(JSON.stringify(record)));
  }

  #stored(draft: Draft, seq: number): void {
    this.#lastSeq = seq;
    this.#inFlight = false;
    this.#waitingBytes -= draft.bytes;
    this.#storedN = draft.n + draft.ordinals - 1;
    while (this.#flushing[0] && this.#flushing[0].upTo <= this.#storedN) this.#flushing.shift()?.resolve();
    if (this.#waitingBytes < this.#waitingBytesMax) {
      for (const waiter of this.#readying.splice(0)) waiter.resolve();
    }
    this.#isInBurst = draft.ordinals >= BURST_TOKENS && this.#sealed.length === 0 && this.#flushing.length === 0;
    if (this.#isInBurst && this.#open?.leaveAtMs !== 0) this.#timer = this.#burstTimer();
    else this.#check();
  }

  #burstTimer(): NodeJS.Timeout {
    this.#timerDueMs = performance.now() + BURST_HOLD_MS;
    return setTimeout(() => this.#pump(), BURST_HOLD_MS);
  }

  #failed(error: unknown): void {
    this.#inFlight = false;
    this.#failure = { error };
    this.#open = undefined;
    this.#sealed = [];
    for (const waiter of [...this.#flushing.splice(0), ...this.#readying.splice(0)]) waiter.reject(error);
  }
}

/** Adds a token. `dt` and `ids` exist only if one of the tokens has a time or an id. */
function join(input: TextInput, text: string, dt: number, id: string | undefined): void {
  const before = input.tokens.length;
  input.tokens.push(text);
  if (input.dt || dt > 0) {
    input.dt ??= new Array(before).fill(0);
    input.dt.push(dt);
  }
  if (input.ids || id !== undefined) {
    input.ids ??= new Array(before).fill('');
    input.ids.push(id ?? '');
  }
}

/** UTF-16 units in a piece of an oversized token. Each takes at most 3 UTF-8 bytes, and there must be room for the id. */
const PIECE_CHARS_MAX = Math.floor(RECORD_INPUT_BYTES_MAX / 4);

function* splitOnCodePoints(text: string, charsMax: number): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const to = cutIndex(text, from + charsMax);
    yield text.slice(from, to);
    from = to;
  }
}

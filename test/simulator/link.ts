import type { LogPart } from './log-servers.ts';
import type { Random } from './random.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** Delay of one message in one direction without a fault. */
const DELAY_MS_MAX = 2;
/** Beginning of the subject of an input. */
const INPUT = 'a2a.raw.';

/**
 * The connection of one process to the log. Messages of one direction keep their order, as on TCP. The fields are times of the clock until
 * which a fault lasts.
 */
export class Link {
  readonly #clock: VirtualClock;
  readonly #random: Random;
  /** Until then the path is frozen without a reset: sent messages arrive afterwards. */
  stalledUntil = 0;
  /** Until then the connection is down: sent messages are lost, subscriptions pause, and live messages are missed. */
  cutUntil = 0;
  /** Until then requests arrive and are executed, but acknowledgements are lost. */
  acksLostUntil = 0;
  /** Until then the process reads nothing from its connection. What it sends arrives. */
  unreadUntil = 0;
  slowUntil = 0;
  slowMsMax = 0;
  /** Requests and answers of different parts of the log overtake each other. */
  reorderedUntil = 0;
  reorderMsMax = 0;
  /** Until then subscriptions are served by a replica that is `lagMs` behind the leader. */
  lagUntil = 0;
  lagMs = 0;
  /** Until then requests to these parts of the log are refused, e.g. because a bucket is full. */
  refusedUntil = new Map<string, number>();
  /** Until then no server answers for these parts, because their stream is missing. */
  missingUntil = new Map<string, number>();
  /** For each stream group, until when its leader cannot be reached. */
  awayUntil = new Map<number, number>();
  /** Until then requests to these parts of the log are lost, while the others are answered. */
  partedUntil = new Map<LogPart, number>();
  /** Until then writes to these parts are delayed, as when an attempt is lost and its repetition arrives late. */
  heldUntil = new Map<string, number>();
  /** The process runs the next version: its records have members and kinds that this version does not know. */
  isNextVersion = false;
  /** The process runs the previous version: its calls have no content, and its relay queues no work for calls. */
  isVersionBefore = false;
  /** The next read of each reader fails. */
  brokenReads = 0;
  /** The next write of more than `first` inputs breaks off after them: the rest is lost, and `end` ends the connection. */
  brokenWrite: { first: number; end: () => void } | undefined;
  /** The inputs that the process has sent at this time, which are sent in one write. */
  #write = { atMs: -1, inputs: 0, isBroken: false };
  #lastRequestAt = 0;
  readonly #lastRequestOfPart = new Map<string, number>();
  #lastAnswerAt = 0;

  constructor(clock: VirtualClock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  get isCut(): boolean {
    return this.cutUntil > this.#clock.nowMs;
  }

  /** Arrival time of a request that is sent now, to stream groups; undefined if it is lost. */
  requestArrivesAt(part: string, groups: readonly number[] = []): number | undefined {
    if (part === 'inputs' && this.#isBrokenOff()) return undefined;
    if (this.isCut || this.#backAt(groups) > this.#clock.nowMs) return undefined;
    if ((this.missingUntil.get(part) ?? 0) > this.#clock.nowMs) return undefined;
    const held = this.heldUntil.get(part) ?? 0;
    if (held > this.#clock.nowMs) return held + this.#delay();
    const isReordered = this.reorderedUntil > this.#clock.nowMs;
    const before = isReordered ? (this.#lastRequestOfPart.get(part) ?? 0) : this.#lastRequestAt;
    const arrivesAt = Math.max(
      before,
      this.#flowsAt() + this.#delay() + (isReordered ? this.#random.next() * this.reorderMsMax : 0),
    );
    this.#lastRequestOfPart.set(part, arrivesAt);
    this.#lastRequestAt = Math.max(this.#lastRequestAt, arrivesAt);
    return arrivesAt;
  }

  #isBrokenOff(): boolean {
    const { nowMs } = this.#clock;
    if (this.#write.atMs !== nowMs) this.#write = { atMs: nowMs, inputs: 0, isBroken: false };
    this.#write.inputs += 1;
    if (this.brokenWrite === undefined || this.#write.inputs <= this.brokenWrite.first) return this.#write.isBroken;
    this.#write.isBroken = true;
    this.#breakOff();
    return true;
  }

  #breakOff(): void {
    this.brokenWrite?.end();
    this.brokenWrite = undefined;
  }

  /** Number of the bytes of a write to a socket that arrive: the write may break off within an input. */
  bytesOfWrite(bytes: Uint8Array): number {
    if (this.brokenWrite === undefined) return bytes.length;
    const text = Buffer.from(bytes);
    let at = text.indexOf(INPUT);
    for (let before = 0; before < this.brokenWrite.first && at >= 0; before += 1) at = text.indexOf(INPUT, at + INPUT.length);
    if (at < 0) return bytes.length;
    this.#breakOff();
    return at + INPUT.length;
  }

  /** Arrival time of an answer or a message that is sent now; undefined if it is lost. */
  answerArrivesAt(): number | undefined {
    if (this.isCut) return undefined;
    if (this.reorderedUntil > this.#clock.nowMs) return this.#flowsAt() + this.#delay() + this.#random.next() * this.reorderMsMax;
    this.#lastAnswerAt = Math.max(this.#lastAnswerAt, this.#flowsAt() + this.#delay());
    return this.#lastAnswerAt;
  }

  /**
   * When a message that a server has received from the process reaches the leader of a stream, which is another server; undefined if it is lost.
   * Messages for one stream keep their order.
   */
  leaderReachedAt(part: LogPart, group: number | undefined, isWrite: boolean): number | undefined {
    const { nowMs } = this.#clock;
    if (this.#backAt(group === undefined ? [] : [group]) > nowMs || (this.partedUntil.get(part) ?? 0) > nowMs) return undefined;
    const held = isWrite ? (this.heldUntil.get(part) ?? 0) : 0;
    const delayMs = this.reorderedUntil > nowMs ? this.#random.next() * this.reorderMsMax : 0;
    const arrivesAt = Math.max(this.#lastRequestOfPart.get(part) ?? 0, nowMs + delayMs, held);
    if (isWrite) this.#lastRequestOfPart.set(part, arrivesAt);
    return arrivesAt;
  }

  /** Arrival time of bytes that the process sends now on its connection, which keeps their order; undefined if they are lost. */
  bytesToServerAt(): number | undefined {
    if (this.isCut) return undefined;
    this.#lastRequestAt = Math.max(this.#lastRequestAt, this.#flowsAt() + this.#delay());
    return this.#lastRequestAt;
  }

  /** When bytes that the server sends now reach the process. Undefined while the link is cut. */
  bytesToClientAt(): number | undefined {
    if (this.isCut) return undefined;
    this.#lastAnswerAt = Math.max(this.#lastAnswerAt, this.#flowsAt() + this.#delay(), this.unreadUntil);
    return this.#lastAnswerAt;
  }

  /** Arrival time of the next item of a subscription to stream groups; undefined if it is lost. */
  itemArrivesAt(groups: readonly number[] = []): number | undefined {
    const answersAt = this.answerArrivesAt();
    const arrivesAt = answersAt && Math.max(answersAt, this.#backAt(groups));
    if (arrivesAt === undefined || this.lagUntil <= this.#clock.nowMs) return arrivesAt;
    return Math.max(arrivesAt, Math.min(this.lagUntil, this.#clock.nowMs + this.lagMs));
  }

  areAcksLost(): boolean {
    return this.acksLostUntil > this.#clock.nowMs;
  }

  isRefused(part: string, groups: readonly number[] = []): boolean {
    const parts = [part, ...groups.map(group => partOf(part, group))];
    return parts.some(one => (this.refusedUntil.get(one) ?? 0) > this.#clock.nowMs);
  }

  #backAt(groups: readonly number[]): number {
    return Math.max(0, ...groups.map(group => this.awayUntil.get(group) ?? 0));
  }

  #flowsAt(): number {
    return Math.max(this.#clock.nowMs, this.stalledUntil);
  }

  #delay(): number {
    const maxMs = this.slowUntil > this.#clock.nowMs ? this.slowMsMax : DELAY_MS_MAX;
    return this.#random.next() * maxMs;
  }
}

/** The part of the log that is one stream group's. */
export function partOf(part: string, group: number): string {
  return `${part} of group ${group}`;
}

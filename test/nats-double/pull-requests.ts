/** A request for messages of a pull consumer, until it has them or expires. */
export type PullRequest = {
  readonly reply: string;
  /** Messages that it still takes. */
  left: number;
  delivered: number;
  /** Bytes that it still takes; 0: any number. */
  bytesLeft: number;
  readonly noWait: boolean;
  /** Epoch milliseconds; POSITIVE_INFINITY: never. */
  readonly expiresAtMs: number;
  readonly heartbeatMs: number;
  nextHeartbeatAtMs: number;
};

/** The waiting requests of a consumer. Each message goes to the next of them. */
export class PullRequests {
  #waiting: PullRequest[] = [];
  /** When the consumer was last used. */
  lastAtMs: number;

  constructor(nowMs: number) {
    this.lastAtMs = nowMs;
  }

  get length(): number {
    return this.#waiting.length;
  }

  get first(): PullRequest | undefined {
    return this.#waiting[0];
  }

  all(): readonly PullRequest[] {
    return [...this.#waiting];
  }

  add(request: PullRequest, nowMs: number): void {
    this.#waiting.push(request);
    this.lastAtMs = nowMs;
  }

  clear(): void {
    this.#waiting = [];
  }

  remove(request: PullRequest): void {
    this.#waiting = this.#waiting.filter(other => other !== request);
  }

  /** Counts a message for the first request, which moves to the end or is complete. */
  takeFirst(): PullRequest {
    const request = this.#waiting.shift()!;
    request.left -= 1;
    request.delivered += 1;
    if (request.left > 0) this.#waiting.push(request);
    return request;
  }

  /** The first deadline or heartbeat. */
  nextAtMs(): number {
    return this.#waiting.reduce(
      (next, { expiresAtMs, nextHeartbeatAtMs }) => Math.min(next, expiresAtMs, nextHeartbeatAtMs),
      Number.POSITIVE_INFINITY,
    );
  }
}

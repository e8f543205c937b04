/**
 * Which processes that hold shards are connected. The connection of a dead process ends at once, long before its heartbeat is
 * stale. `member` is its key in the bucket of leases. Use it only to shorten a wait that also ends by the heartbeat.
 */
export interface Presence {
  /** Makes the member present until `signal` aborts, this process dies or the log is closed. */
  enter(member: string, signal: AbortSignal): void;
  /** Resolves with true if no connected process is the member. False if the broker does not answer. Never rejects. */
  isGone(member: string): Promise<boolean>;
}

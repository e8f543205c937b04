/** Bounds of the door. Every one has a default and can be set by the process that opens it. */
export type Limits = {
  /** Request body; bytes. More is answered with 413. */
  bodyBytesMax: number;
  /** Streams and waiting sends open at once in this process; one more is answered with 503 and Retry-After. */
  streamsMax: number;
  /** Bytes that wait for one slow client; more, and the connection is cut. The client comes back with its cursor. Less than 128 KiB cuts healthy ones: Node holds up to 64 KiB by itself. */
  viewerBufferBytesMax: number;
  /** A client that took nothing of a stream, or of an answer, for so long while it was waited for is cut; milliseconds. */
  viewerStallMsMax: number;
  /** Comment on a quiet stream, so that proxies keep it; milliseconds. */
  heartbeatMs: number;
  /** A blocking send answers with the task as it is after so long; milliseconds. */
  blockingWaitMsMax: number;
  /** The relay has not answered a stored message by then: UNAVAILABLE. The message is not lost; milliseconds. */
  firstFactMsMax: number;
  /** A cancel answers with the task as it is after so long; milliseconds. */
  cancelWaitMsMax: number;
  /** How far a reader may wait for this process to have read what the log already has; milliseconds. */
  freshMsMax: number;
  /** A feed without viewers is kept for so long, for the client that reconnects; milliseconds. */
  feedLingerMs: number;
  /** Feeds without viewers; the oldest goes first. */
  idleFeedsMax: number;
  /** Newest facts of a followed task kept in memory, so that a recent cursor needs no read. */
  ringFactsMax: number;
  ringBytesMax: number;
  /** Tasks that a list can find, those with the newest status; about 300 bytes each, held once somebody has asked for a list. */
  listedTasksMax: number;
  /** Open tasks of a caller, those with the newest status, whose state a list looks up in the log; of others it shows what the index has, which is what it was a moment ago. */
  listedOpenTasksMax: number;
  /** How long a webhook that was set first waits for the task with its id (S3-23); milliseconds. */
  pushWaitMsMax: number;
  /** Open connections of the process, busy or idle; one more is dropped at once. */
  connectionsMax: number;
  /** Requests on one connection; then the client opens another, maybe to another replica. */
  requestsPerConnectionMax: number;
  /** A request whose headers and body are not complete by then is cut; milliseconds. */
  requestMsMax: number;
};

export const LIMITS: Limits = {
  bodyBytesMax: 1024 * 1024,
  streamsMax: 5_000,
  viewerBufferBytesMax: 1024 * 1024,
  viewerStallMsMax: 30_000,
  heartbeatMs: 15_000,
  blockingWaitMsMax: 600_000,
  firstFactMsMax: 60_000,
  cancelWaitMsMax: 10_000,
  freshMsMax: 5_000,
  feedLingerMs: 5_000,
  idleFeedsMax: 1_000,
  ringFactsMax: 256,
  ringBytesMax: 256 * 1024,
  listedTasksMax: 100_000,
  listedOpenTasksMax: 64,
  pushWaitMsMax: 3_600_000,
  connectionsMax: 20_000,
  requestsPerConnectionMax: 10_000,
  requestMsMax: 30_000,
};

/** Bounds of an A2A server. Each has a default, which the process may override. */
export type Limits = {
  /** Largest request body. A larger one gets 413. */
  bodyBytesMax: number;
  /** Concurrent streams and waiting sends of this process. Further ones get 503 with Retry-After. */
  streamsMax: number;
  /**
   * Streams and waiting sends of one caller in this process. The same number applies to sends and cancels that do not wait. Undefined: two
   * fifths of `streamsMax`, or all of them without authentication. Requests beyond it get 429, as with every limit of an owner.
   */
  ownerStreamsMax: number | undefined;
  /** Messages from one caller to this process, each of which may begin a turn: average rate, and burst. */
  ownerMessagesPerSecond: number;
  ownerMessagesBurst: number;
  /** Request bytes of one caller to this process: average rate, and burst. */
  ownerRequestBytesPerSecond: number;
  ownerRequestBytesBurst: number;
  /**
   * Bytes that this process sends to one caller, in answers and event streams: average rate, and burst. Beyond it streams and exports are
   * slowed down, and other requests except cancels get 429. Unlimited without authentication, because there is no other caller to protect.
   */
  ownerSentBytesPerSecond: number;
  ownerSentBytesBurst: number;
  /** Tasks of one caller that have not ended, over all processes. */
  ownerOpenTasksMax: number;
  /** Push configurations of one caller over all processes, including those of ended tasks until retention removes them. */
  ownerPushConfigsMax: number;
  /**
   * Bytes of these configurations. By default a tenant may use a quarter of the bucket: its bytes are shared, and when it is full, the
   * webhooks of every caller are refused.
   */
  ownerPushConfigBytesMax: number;
  /** Multiple of the limits of one owner that all callers of a tenant together may use. */
  tenantLimitFactor: number;
  /**
   * Share of the log's bytes that the tasks of one tenant, or of one caller without a tenant, may take, over all processes. At the
   * limit its next task gets 429. 1: no limit.
   */
  tenantStoredShare: number;
  /**
   * Bytes buffered for one slow client. Beyond that its connection is closed, and it resumes with its cursor. Below 128 KiB even healthy
   * clients would be cut, because Node itself buffers up to 64 KiB.
   */
  viewerBufferBytesMax: number;
  /**
   * A client that reads nothing of a stream or response for this long, while the server waits for it, is disconnected.
   */
  viewerStallMsMax: number;
  /**
   * A client that takes longer than this to read EXPORT_READ_BYTES_MIN of an export is disconnected, because the number of exports at once
   * is small. Time spent reading the log does not count.
   */
  exportReadMsMax: number;
  /** Interval of the comment that keeps idle streams open through proxies. */
  heartbeatMs: number;
  /** After this long a blocking send returns the task as it is. */
  blockingWaitMsMax: number;
  /**
   * After this long a get with `currentGeneration` returns the task as it is. It is below 30 s, after which clients and proxies cut
   * requests.
   */
  longPollMsMax: number;
  /** Newest entries of a task's timeline in one response (draft 1.1). */
  timelineEntriesMax: number;
  /**
   * How long the relay has to process a stored message before the client gets UNAVAILABLE. The message is not lost.
   */
  firstFactMsMax: number;
  /** How long a non-blocking send waits for the task to leave `submitted` before it returns the task as it is. */
  workingWaitMsMax: number;
  /** After this long a cancel returns the task as it is. */
  cancelWaitMsMax: number;
  /** How long a read waits until this process has folded everything that was in the log when the read began. */
  freshMsMax: number;
  /**
   * Time for the relay to fold the inputs of lost records again. Viewers wait that long, because until then the task is older than the
   * events that they have received. A relay notices a loss at its next append to the task, or within 5 s. But the server that lost power
   * may have been the leader: then nothing is stored before the others have elected another one, after 4 to 9 s, and requests without an
   * answer have been sent again.
   */
  refoldMsMax: number;
  /** How long a feed without viewers stays open for a client that reconnects, and how long the feed of an ended task is used. */
  feedLingerMs: number;
  /** Feeds kept without viewers; the oldest is closed first. */
  idleFeedsMax: number;
  /** Newest facts of a followed task kept in memory, so that a recent cursor needs no read of the log. */
  ringFactsMax: number;
  ringBytesMax: number;
  /** Bytes of those facts for all followed tasks together. Facts of the tasks that have been idle for longest leave memory first. */
  ringsBytesMax: number;
  /**
   * Bytes of the followed tasks themselves, for snapshots and answers. Tasks that have been idle for longest leave memory first, and are
   * read from the log when a client needs them.
   */
  viewsBytesMax: number;
  /**
   * Bytes of the artifacts of one task in an answer: a larger task is refused, because it passes through the memory of this process and of
   * the client as a whole. The clients of Hopline read as much.
   */
  answerBytesMax: number;
  /**
   * Bytes of the artifacts of one task in an event of a stream. A larger task is sent as all of its events instead, none of which is larger than a
   * record of the log. Below the 16 MiB that the clients of Hopline read, because text grows when it is written as JSON.
   */
  snapshotBytesMax: number;
  /**
   * Number of a caller's ended tasks, 300 to 500 bytes each, that one page of ListTasks examines beyond the newest of each shard. If the
   * filter has not matched enough of them, the page ends there with a token to continue.
   */
  listedTasksPerPageMax: number;
  /**
   * Number of a caller's open tasks whose state a list reads from the log: those with the newest status. For other tasks it shows the
   * index, which may lag.
   */
  listedOpenTasksMax: number;
  /** How long a push configuration set before its task waits for that task (S3-23). */
  pushWaitMsMax: number;
  /** Open connections of the process, busy or idle; further ones are dropped at once. */
  connectionsMax: number;
  /** Requests on one connection. Afterwards the client opens another, perhaps to another replica. */
  requestsPerConnectionMax: number;
  /** How long a client has to send headers and body completely before the request is cut. */
  requestMsMax: number;
};

export const LIMITS: Limits = {
  bodyBytesMax: 1024 * 1024,
  streamsMax: 10_000,
  ownerStreamsMax: undefined,
  ownerMessagesPerSecond: 200,
  ownerMessagesBurst: 2_000,
  ownerRequestBytesPerSecond: 1024 * 1024,
  ownerRequestBytesBurst: 128 * 1024 * 1024,
  // 16 MiB/s, because 4,000 streams with 20 tokens a second each send 12 MiB/s. The burst is enough for 100 replays of a 2 MB task.
  ownerSentBytesPerSecond: 16 * 1024 * 1024,
  ownerSentBytesBurst: 256 * 1024 * 1024,
  ownerOpenTasksMax: 10_000,
  ownerPushConfigsMax: 5_000,
  ownerPushConfigBytesMax: 16 * 1024 * 1024,
  tenantLimitFactor: 2,
  tenantStoredShare: 1,
  viewerBufferBytesMax: 1024 * 1024,
  viewerStallMsMax: 30_000,
  exportReadMsMax: 300_000,
  heartbeatMs: 15_000,
  blockingWaitMsMax: 600_000,
  longPollMsMax: 20_000,
  timelineEntriesMax: 1_000,
  firstFactMsMax: 60_000,
  workingWaitMsMax: 250,
  cancelWaitMsMax: 10_000,
  freshMsMax: 5_000,
  refoldMsMax: 20_000,
  feedLingerMs: 5_000,
  idleFeedsMax: 1_000,
  ringFactsMax: 256,
  ringBytesMax: 256 * 1024,
  ringsBytesMax: 32 * 1024 * 1024,
  viewsBytesMax: 64 * 1024 * 1024,
  answerBytesMax: 64 * 1024 * 1024,
  snapshotBytesMax: 8 * 1024 * 1024,
  listedTasksPerPageMax: 20_000,
  listedOpenTasksMax: 64,
  pushWaitMsMax: 3_600_000,
  connectionsMax: 20_000,
  requestsPerConnectionMax: 10_000,
  requestMsMax: 30_000,
};

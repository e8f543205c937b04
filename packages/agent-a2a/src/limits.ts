export type A2ALimits = {
  /** From the request to the first event, milliseconds. Comments and frames of unknown kinds are no events. */
  firstEventMsMax: number;
  /**
   * Between two events of a stream, or two changes of the task after the stream ended, milliseconds. The time in which we do not
   * read does not count.
   */
  silenceMsMax: number;
  /** Of one turn, milliseconds. */
  totalMsMax: number;
  /** With a webhook: between two polls without a call, milliseconds. A lost call only delays the turn by this. */
  lostCallMsMax: number;
  /** While subscribed: between two polls without an event, milliseconds. An end whose event is lost delays the turn by this. */
  lostEndMsMax: number;
  /** Of one event or one whole response, bytes. */
  eventBytesMax: number;
};

export const A2A_LIMITS: A2ALimits = {
  firstEventMsMax: 60_000,
  silenceMsMax: 120_000,
  totalMsMax: 3_600_000,
  lostCallMsMax: 30_000,
  lostEndMsMax: 15_000,
  eventBytesMax: 4 * 1024 * 1024,
};

/** Extensions requested from one agent; the agents file is checked against it. */
export const EXTENSIONS_MAX = 16;

export type A2ALimits = {
  /** Time from the request to the first event. Comments and frames of unknown kinds are not events. */
  firstEventMsMax: number;
  /**
   * Time between two events of a stream, or two changes of the task after the stream ended. Time during which we do not read does not
   * count.
   */
  silenceMsMax: number;
  /** Duration of one turn. */
  totalMsMax: number;
  /** With a webhook: interval of polls while no call arrives. A lost call delays the turn by no more than this. */
  lostCallMsMax: number;
  /** While subscribed: interval of polls while no event arrives. A lost end event delays the turn by no more than this. */
  lostEndMsMax: number;
  /** Bytes of one event or one whole response. */
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
export const AGENT_EXTENSIONS_MAX = 16;

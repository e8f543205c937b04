export type A2ALimits = {
  /** The agent's first event must come within, milliseconds. */
  firstEventMsMax: number;
  /** The agent may send nothing at all for, milliseconds. The time in which we do not read does not count. */
  silenceMsMax: number;
  /** A turn may take in all, milliseconds. */
  totalMsMax: number;
  /** With a webhook the agent's task is looked at this often though nobody called, milliseconds: a call that is lost delays, and does no more. */
  lostCallMsMax: number;
  /** One event or one whole answer, bytes. */
  eventBytesMax: number;
};

export const A2A_LIMITS: A2ALimits = {
  firstEventMsMax: 60_000,
  silenceMsMax: 120_000,
  totalMsMax: 3_600_000,
  lostCallMsMax: 30_000,
  eventBytesMax: 4 * 1024 * 1024,
};

/** Extensions that one agent is asked for; the agents file is checked against it. */
export const EXTENSIONS_MAX = 16;

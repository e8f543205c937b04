/** Bounds of single requests. */
export type ClientLimits = {
  /** A stream that is silent for this long counts as broken. Hopline sends a comment every 15 s. */
  silenceMsMax: number;
  /** Bound of `get`, `list`, `cancel`, `card`, and of a `send` with `blocking: false`. Cancel waits up to 10 s for the agent. */
  callMsMax: number;
  /**
   * Bound of any other `send`, which waits for the end of the turn. The server responds with the current task after 600 s.
   */
  sendMsMax: number;
};

/** Default limits. A send may take a minute longer than the longest turn of a server, which is ten minutes. */
export const CLIENT_LIMITS: ClientLimits = { silenceMsMax: 60_000, callMsMax: 30_000, sendMsMax: 660_000 };

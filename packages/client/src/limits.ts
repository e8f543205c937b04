/** Bounds of single requests, in milliseconds. Infinity: none. */
export type ClientLimits = {
  /** A stream that is silent for this long counts as broken. Hopline sends a comment every 15 s. */
  silenceMsMax: number;
  /** Bound of `get`, `list`, `cancel`, `card`, and of a `send` with `blocking: false`. Cancel waits up to 10 s for the agent. */
  callMsMax: number;
  /**
   * Bound of any other `send`, which waits for the end of the turn, over all its tries: a proxy may end each of them sooner. The server responds with
   * the current task after 600 s.
   */
  sendMsMax: number;
};

/** Longest time of a timer, 24 days: JavaScript's timers fire at once for a longer one. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

/** An undefined member counts as absent. */
export type Overrides<T> = { [Key in keyof T]?: T[Key] | undefined };

/** Default limits. A send may take a minute longer than the longest turn of a server, which is ten minutes. */
export const CLIENT_LIMITS: ClientLimits = { silenceMsMax: 60_000, callMsMax: 30_000, sendMsMax: 660_000 };

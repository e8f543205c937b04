/** Bounds of single requests. Every one has a default and can be set with the client. */
export type ClientLimits = {
  /** A stream on which nothing at all comes, not even a comment, is taken for broken; milliseconds. Hopline sends a comment every 15 s. */
  silenceMsMax: number;
  /** `get`, `cancel` and `card` are answered within; milliseconds. Cancel waits up to 10 s for the agent. */
  callMsMax: number;
  /** `send` waits for the end of the task; milliseconds. The server answers with the task as it is after 600 s. */
  sendMsMax: number;
};

export const CLIENT_LIMITS: ClientLimits = { silenceMsMax: 60_000, callMsMax: 30_000, sendMsMax: 660_000 };

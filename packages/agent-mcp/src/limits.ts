/** Tool calls one message may name. */
export const CALLS_MAX = 32;
/** Tools of one server; further ones are not offered. */
export const TOOLS_MAX = 512;
/** Progress lines that wait to be passed on; of more, the oldest is dropped. */
export const PROGRESS_PENDING_MAX = 64;
/** One answer of a server, bytes; one that sends more is cut off (the same bound the SDK has for stdio). */
export const RESPONSE_BYTES_MAX = 10 * 1024 * 1024;

export type McpLimits = {
  /** Starting the server and the handshake may take, milliseconds. */
  connectMsMax: number;
  /** A call may say nothing for, milliseconds; progress counts. */
  silenceMsMax: number;
  /** A call may take in all, milliseconds. */
  totalMsMax: number;
};

export const MCP_LIMITS: McpLimits = { connectMsMax: 20_000, silenceMsMax: 60_000, totalMsMax: 600_000 };

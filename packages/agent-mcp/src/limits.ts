/** Tool calls in one message. */
export const CALLS_MAX = 32;
/** Braces that are no JSON around a call: each costs a scan of all that it encloses, of the rest of the text if it is not closed. */
export const NESTED_MAX = 16;
/** Tools offered of one server. */
export const TOOLS_MAX = 512;
/** Progress notifications that wait for the reader; above this, the oldest is dropped. */
export const PROGRESS_PENDING_MAX = 64;
/** Of one response, bytes. It is the SDK's bound for stdio. */
export const RESPONSE_BYTES_MAX = 10 * 1024 * 1024;

export type McpLimits = {
  /** Of starting the server and the handshake, milliseconds. */
  connectMsMax: number;
  /** Without a result or progress of a call, milliseconds. */
  silenceMsMax: number;
  /** Of one call, milliseconds. */
  totalMsMax: number;
};

export const MCP_LIMITS: McpLimits = { connectMsMax: 20_000, silenceMsMax: 60_000, totalMsMax: 600_000 };

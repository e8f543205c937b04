/** Tool calls in one message. */
export const CALLS_MAX = 32;
/** Unclosed braces examined in one text: each costs a scan to its end. */
export const UNCLOSED_MAX = 16;
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

/** Maximum tool calls in one message. */
export const MESSAGE_CALLS_MAX = 32;
/**
 * Maximum number of braces around a call that do not belong to JSON. Each of them costs a scan of the text that it encloses, or of all
 * remaining text if it is not closed.
 */
export const NESTED_MAX = 16;
/** Maximum tools of one agent. */
export const TOOLS_MAX = 512;
/** Progress notifications that wait for the reader; above this, the oldest is dropped. */
export const PROGRESS_PENDING_MAX = 64;
/** Time for a call to end after its question to the user was canceled; then the call is canceled. */
export const ASKED_MS_MAX = 2_000;
/** Maximum results `input_required` of a call in one turn. */
export const INPUT_ROUNDS_MAX = 10;
/** Bytes of one response, the same as the SDK's limit for stdio. */
export const MCP_RESPONSE_BYTES_MAX = 10 * 1024 * 1024;

export type McpLimits = {
  /** Time for starting the server and its first answer, and then for the handshake of a server before MCP 2026-07-28. */
  connectMsMax: number;
  /** Time without a result or progress of a call. */
  silenceMsMax: number;
  /** Duration of one call. */
  totalMsMax: number;
};

export const MCP_LIMITS: McpLimits = { connectMsMax: 20_000, silenceMsMax: 60_000, totalMsMax: 600_000 };

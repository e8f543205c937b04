/** UTF-8 bytes of the text of one turn, which is kept for comparison with snapshots. */
export const TURN_TEXT_BYTES_MAX = 16 * 1024 * 1024;
/** Events of one turn. */
export const TURN_EVENTS_MAX = 2_000_000;
/** Concurrent streams of one turn: half of the lanes a task may have (TURN_LANES_MAX of packages/task). */
export const TURN_TEXTS_MAX = 64;
/**
 * Artifacts and notices of one turn, all of which every client of the task reads. TURN_LANES_MAX of packages/task also bounds the text
 * artifacts that are sent in chunks or are longer than WHOLE_TEXT_UNITS_MAX.
 */
export const TURN_ARTIFACTS_MAX = 1_000;
/** UTF-16 units of a complete text artifact that is stored as one event, like a file. It then needs none of the turn's lanes. */
export const WHOLE_TEXT_UNITS_MAX = 32 * 1024;
/** JSON bytes of the arguments of one tool call that clients see. Longer ones are cut. */
export const TOOL_ARGUMENTS_BYTES_MAX = 16 * 1024;
/** JSON bytes of the result of one tool call that clients see. */
export const TOOL_RESULT_BYTES_MAX = 64 * 1024;
/** JSON bytes of all arguments and results of one turn that clients see, because they are part of the task that every client reads. */
export const TURN_TOOL_BYTES_MAX = 2 * 1024 * 1024;
/**
 * Bytes that may wait for the log before the agent has to wait. One event, such as a tool's answer, can be as large as a whole turn, so 16
 * times this number, the point at which a writer stops its source, must exceed TURN_TEXT_BYTES_MAX.
 */
export const TURN_WAITING_BYTES_MAX = TURN_TEXT_BYTES_MAX / 8;
/**
 * Events of one turn that are taken before the process does other work. Without this limit, a socket that is always full would be read for
 * 40 ms or more in one turn of the event loop, and no acknowledgement, cancellation or other task would be served in that time.
 */
export const EVENTS_AT_ONCE_MAX = 2_048;
/** After this time, an agent that does not stop after its turn is abandoned. It is longer than canceling a remote agent may take. */
export const STOP_MS_MAX = 3_000;

/**
 * The state for canceling a remote run is stored with the next event, or by itself after this time. So an agent that answers at once causes
 * no extra record, and an agent that thinks for a minute can be canceled from its first second on.
 */
export const REMOTE_RUN_HOLD_MS = 250;
/** Stored remote runs of one attempt. If an agent begins more, only its own process can cancel them. */
export const REMOTE_RUNS_MAX = 64;
/** Time limit of one request to cancel a remote run. */
export const CANCEL_TRY_MS_MAX = 2_000;
/** How long a cancel is repeated until the server answers or refuses it: as long as the server takes to restart. */
export const CANCEL_MS_MAX = 30_000;

/** Retries of a call that failed as retryable. Fewer than the attempts at a work item, so that the last failure keeps its own reason. */
export const RETRIES_MAX = 2;
/** Default number of those retries. */
export const RETRIES_DEFAULT = 1;

/** Bounds of `retries` of `tool` and `step`. */
export const RUN_RETRIES_MAX = 10;
/** First wait before such a retry in milliseconds, doubled with each failure and with full jitter, and the longest wait. */
export const RUN_RETRY_MS_BASE = 500;
export const RUN_RETRY_MS_MAX = 15_000;

/** A first attempt's `reached` record is stored together with the outcome of the step, or by itself after this many milliseconds. */
export const STEP_HOLD_MS = 250;
/** Stored steps of one attempt. */
export const AGENT_STEPS_MAX = 1_000;
/** JSON bytes of the results of one attempt's steps. The next attempt keeps all of them in memory. */
export const AGENT_STEPS_BYTES_MAX = 8 * 1024 * 1024;

/** Default of `stepsMax` of a model: the number of its requests in one call. Each one but the last ends in tool calls. */
export const MODEL_STEPS_DEFAULT = 16;
/** Upper bound of `stepsMax`. */
export const MODEL_STEPS_MAX = 128;
/** Maximum number of tools offered to a model, the limit of OpenAI (https://platform.openai.com/docs/api-reference/chat/create). */
export const MODEL_TOOLS_MAX = 128;
/** UTF-16 units of one tool result that a model reads. A longer text is cut, with a note. */
export const MODEL_TOOL_RESULT_UNITS_MAX = 64 * 1024;

/** A turn that exceeds a bound fails with this message as its reason. */
export class BoundExceeded extends Error {
  override readonly name = 'BoundExceeded';
}

/**
 * Lanes (streamed artifacts) of one turn; one more fails the task. Every record holds them, so this bounds a record's overhead.
 */
export const TURN_LANES_MAX = 128;
/**
 * UTF-8 bytes of the lanes of one turn as JSON, with the names and metadata of their artifacts. A lane that exceeds it fails the task.
 * Every record holds the lanes, and the end of the task repeats the metadata of each open one: the bound leaves room for both in a record
 * of 1 MiB.
 */
export const TURN_LANES_BYTES_MAX = 128 * 1024;
/** Calls to agents in one turn; one more fails the task. */
export const TURN_CALLS_MAX = 64;
/**
 * UTF-16 units of JSON of a request for credentials that every record keeps while its call waits. A larger request is shown again without
 * its message.
 */
export const CALL_AUTH_UNITS_MAX = 4 * 1024;
/** Steps of the root producer in one turn; one more fails the task. */
export const TURN_STEPS_MAX = 128;
/** UTF-16 units of one step as JSON. With six bytes per escaped unit it stays below a record of 1 MiB. */
export const STEP_JSON_UNITS_MAX = 160 * 1024;
/** UTF-16 units of the JSON with which an adapter can cancel a remote run (a few ids). Longer JSON is rejected. */
export const REMOTE_RUN_UNITS_MAX = 4 * 1024;
/** UTF-8 bytes of the outcome of one step of an agent's own code as JSON. A larger one is rejected. */
export const STEP_OUTCOME_BYTES_MAX = 128 * 1024;
/** UTF-16 units of the name of such a step. */
export const STEP_NAME_UNITS_MAX = 128;
/** Maximum number of client messages in one task. Ingress refuses further ones, and the decider rejects them. */
export const TURNS_MAX = 256;

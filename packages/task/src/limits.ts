/**
 * Lanes (streamed artifacts) of one turn; one more fails the task. Every record holds them, so this bounds a record's overhead.
 */
export const LANES_MAX = 128;
/**
 * JSON of the lanes of one turn, names and metadata of their artifacts, UTF-8 bytes; a lane above it fails the task. Every record
 * holds them, and the end of the task repeats the metadata of each open one: the bound leaves room for both in a record of 1 MiB.
 */
export const LANES_BYTES_MAX = 128 * 1024;
/** Calls to agents in one turn; one more fails the task. */
export const CALLS_MAX = 64;
/** Steps of the root producer in one turn; one more fails the task. */
export const STEPS_MAX = 128;
/** JSON of one step, UTF-16 units. At six bytes an escaped unit it stays below a record of 1 MiB. */
export const STEP_UNITS_MAX = 160 * 1024;
/** JSON of what an adapter needs to cancel a remote run (a few ids), UTF-16 units; a longer one is rejected. */
export const REMOTE_RUN_UNITS_MAX = 4 * 1024;
/** Messages of a client in one task. Ingress refuses later ones, the decider rejects them. */
export const TURNS_MAX = 256;

/** Lanes (streamed artifacts) of one task; one more fails the task. They stand in every record, so this bounds the record's overhead. */
export const LANES_MAX = 128;
/** Calls to agents of one task; one more fails the task. */
export const CALLS_MAX = 64;
/** Steps the root producer may record in one turn; one more fails the task. */
export const STEPS_MAX = 128;
/** JSON of one step, UTF-16 units: with six bytes an escaped unit it stays under the log's record of 1 MiB. */
export const STEP_UNITS_MAX = 160 * 1024;
/** Messages a client may add to one task; later ones are dropped, and ingress refuses them. */
export const TURNS_MAX = 256;

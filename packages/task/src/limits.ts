/** Lanes (streamed artifacts) of one task; one more fails the task. They stand in every record, so this bounds the record's overhead. */
export const LANES_MAX = 128;
/** Calls to agents of one task; one more fails the task. */
export const CALLS_MAX = 64;
/** Messages a client may add to one task; later ones are dropped, and ingress refuses them. */
export const TURNS_MAX = 256;

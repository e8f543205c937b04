/**
 * An origin that refuses every connection. The port of a closed server may be given to another test in the meantime; port 2 is outside of the
 * range from which the system chooses, no service uses it, and it is not among the ports that `fetch` blocks.
 */
export const REFUSED_ORIGIN = 'http://127.0.0.1:2';

/**
 * Calls from one process of an agent to the others: at most once, and kept nowhere. Good only for what whoever waits finds out by itself a little later.
 * A key is 1 to WAKE_KEY_CHARS_MAX of letters, digits, `_` and `-`; it says who is meant and must tell nothing to anybody else who hears it.
 */
export interface WakeUps {
  /** Tells every process of the agent that listens, this one included. Without a connection nobody is told. */
  wake(agent: string, key: string): void;
  /** Calls `onKey` for each wake-up of the agent until `signal` aborts. */
  listen(agent: string, onKey: (key: string) => void, signal: AbortSignal): void;
}

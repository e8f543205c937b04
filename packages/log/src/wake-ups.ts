/**
 * Signals between the processes of one agent, delivered at most once and not stored. Use them only to shorten a wait that would also end by
 * polling. A key is 1 to WAKE_KEY_CHARS_MAX letters, digits, `_` or `-`. It identifies the waiting process and must reveal nothing to other
 * receivers.
 */
export interface WakeUps {
  /** Signals every listening process of the agent, including this one. Without a connection the signal is lost. */
  wake(agent: string, key: string): void;
  /** Calls `onKey` for each wake-up of the agent until `signal` aborts. */
  listen(agent: string, onKey: (key: string) => void, signal: AbortSignal): void;
}

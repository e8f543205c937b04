import type { A2AError } from '@hopline/a2a';

/** What a call does by itself, for those who want to show or count it. */
export type Notice =
  | /** A try failed; the next one follows after `waitMs`. */ { kind: 'retry'; error: A2AError; tries: number; waitMs: number }
  | /** The server sent an event that is none of the dialect; it was left out. */ { kind: 'skipped' };

export type CallOptions = {
  /** Ends the call and its waits with the signal's reason. The task goes on. */
  signal?: AbortSignal;
  onNotice?: (notice: Notice) => void;
};

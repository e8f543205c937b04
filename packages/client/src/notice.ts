import type { A2AError } from '@hopline/a2a';

/** Reports what a call does on its own, for display or metrics. */
export type Notice =
  | /** A try failed; the next one starts after `waitMs`. */ { kind: 'retry'; error: A2AError; tries: number; waitMs: number }
  | /** An event of an unknown kind was skipped. */ { kind: 'skipped' };

export type CallOptions = {
  /** Ends the call with the signal's reason. The task continues. */
  signal?: AbortSignal;
  onNotice?: (notice: Notice) => void;
};

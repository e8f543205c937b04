import type { A2AError } from '@hopline/a2a/client';

/** Reports what a call does on its own, for display or metrics. */
export type Notice =
  | /** A stream is open: the server has sent the head of its response. */ { kind: 'opened' }
  | /** A try failed; the next one starts after `waitMs`. */ { kind: 'retry'; error: A2AError; tries: number; waitMs: number }
  | /** An event of an unknown kind was skipped. */ { kind: 'skipped' };

/** Options of every call. */
export type CallOptions = {
  /** Ends the call with the signal's reason. The task continues. */
  signal?: AbortSignal | undefined;
  /** [W3C trace context](https://www.w3.org/TR/trace-context/) of the caller, sent with every request of the call, resumes included. */
  traceparent?: string | undefined;
  /** Receives opened streams, retries and skipped events while the call runs. */
  onNotice?: ((notice: Notice) => void) | undefined;
};

import type { A2AError } from '@hopline/a2a/client';

type FailedTryOptions = {
  /** Delay requested by the server. */
  delayMs?: number | undefined;
  /** True if the server responded; otherwise there may be no server at this address. */
  reached?: boolean;
  /** HTTP status of the response. */
  status?: number;
};

/**
 * One failed try: the error for the caller if it was the last one, and the input for the next delay. Internal to this package.
 */
export class FailedTry extends Error {
  override readonly name = 'FailedTry';
  readonly error: A2AError;
  readonly delayMs: number | undefined;
  readonly reached: boolean;
  readonly status: number | undefined;

  constructor(error: A2AError, { delayMs, reached = true, status }: FailedTryOptions = {}) {
    super(error.message, { cause: error });
    this.error = error;
    this.delayMs = delayMs;
    this.reached = reached;
    this.status = status;
  }
}

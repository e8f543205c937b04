import type { A2AError } from '@hopline/a2a';

type Facts = {
  /** The server asked to be left alone for so long; milliseconds. */
  askedMs?: number | undefined;
  /** There was an answer of some kind; false: there may be no server at all. */
  reached?: boolean;
};

/** One try that did not work: what the caller is told if it was the last one, and what decides about the next. Never leaves the package. */
export class FailedTry extends Error {
  override readonly name = 'FailedTry';
  readonly error: A2AError;
  readonly askedMs: number | undefined;
  readonly reached: boolean;

  constructor(error: A2AError, { askedMs, reached = true }: Facts = {}) {
    super(error.message, { cause: error });
    this.error = error;
    this.askedMs = askedMs;
    this.reached = reached;
  }
}

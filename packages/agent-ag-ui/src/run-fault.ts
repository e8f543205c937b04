/** A run without an end. The message quotes nothing of the server, which may be content. */
export class RunFault extends Error {
  override readonly name = 'RunFault';
  readonly retryable: boolean;

  constructor(reason: string, retryable: boolean, options?: ErrorOptions) {
    super(reason, options);
    this.retryable = retryable;
  }
}

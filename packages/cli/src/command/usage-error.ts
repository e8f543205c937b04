/** The command line or its environment is invalid. The message is for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

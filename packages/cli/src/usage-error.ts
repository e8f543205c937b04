/** The command line cannot be understood. The message is for the person who wrote it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

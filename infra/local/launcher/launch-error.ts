/** A start that cannot go on. Its message is one sentence for the reader: what is wrong and what to do. */
export class LaunchError extends Error {
  override name = 'LaunchError';
}

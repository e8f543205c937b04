/** A start that failed. The message states the fault and what to do. */
export class LaunchError extends Error {
  override name = 'LaunchError';
}

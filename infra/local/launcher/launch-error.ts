/** A failed start. The message names the fault and the fix. */
export class LaunchError extends Error {
  override name = 'LaunchError';
}

/** The environment names no running cluster, or has a credential that cannot be sent. The message is for the user. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

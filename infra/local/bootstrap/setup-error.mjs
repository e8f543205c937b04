/** A fault of the machine or the network that the user can fix. The message names the fault and the fix. */
export class SetupError extends Error {
  name = 'SetupError';
}

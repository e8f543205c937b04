/** A fault of the machine or the network that the user can fix. The message states the fault and what to do. */
export class SetupError extends Error {
  name = 'SetupError';
}

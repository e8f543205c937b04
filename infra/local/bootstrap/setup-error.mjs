/** A fault of the machine or the network that the reader can mend. Its message is one sentence: what is wrong and what to do. */
export class SetupError extends Error {
  name = 'SetupError';
}

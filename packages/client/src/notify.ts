/**
 * Calls the subscribers of a store. One that throws does not keep the value from the others, nor end the stream of the store: its error is thrown in a
 * turn of the event loop of its own, as an uncaught one.
 */
export function notify<T>(runs: Iterable<(value: T) => void>, value: T): void {
  for (const run of [...runs]) {
    try {
      run(value);
    } catch (thrown) {
      setTimeout(() => {
        throw thrown;
      });
    }
  }
}

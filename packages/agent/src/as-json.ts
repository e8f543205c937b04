/**
 * The type of a value after a round trip through JSON: a Date is a string, and functions are gone.
 * @public
 */
export type AsJson<T> = unknown extends T
  ? T
  : T extends Record<'toJSON', (...args: never) => infer J>
    ? J
    : T extends bigint | symbol | ((...args: never) => unknown)
      ? never
      : T extends object
        ? { [K in keyof T]: AsJson<T[K]> }
        : T;

/**
 * Limits of this binding, in addition to those of the A2A server: `bodyBytesMax` is its largest request, `heartbeatMs` its ping interval.
 */
export const GRPC_LIMITS = {
  /**
   * Concurrent calls on one connection. A proxy uses one connection for many clients; `streamsMax` bounds the streams of all connections.
   */
  callsPerConnectionMax: 1_000,
  /**
   * Megabytes of memory for the headers and buffered responses of one connection. The same amount again is available for its requests, each
   * counted from its first byte to the end of its call. Beyond that, new calls are refused.
   */
  connectionMegabytesMax: 64,
  /** A connection that does not answer a ping in this time is dropped. */
  pingMsMax: 20_000,
  /** A connection without calls is closed after this time. */
  idleConnectionMs: 300_000,
  /**
   * Calls that are still open this long after draining began are cut, and so are connections that the server has closed but the client has
   * not.
   */
  closeMsMax: 3_000,
};

export type GrpcLimits = typeof GRPC_LIMITS;

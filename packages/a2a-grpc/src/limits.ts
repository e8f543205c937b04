/** Bounds of this binding, beside those of the door: its `bodyBytesMax` is the largest request, its `heartbeatMs` the time between pings of a connection. */
export const GRPC_LIMITS = {
  /** Calls open at once on one connection. A proxy has one connection for many clients; the door's `streamsMax` bounds them all. */
  callsPerConnectionMax: 1_000,
  /** Memory of one connection, megabytes: of headers and what waits to be sent, and once more of requests, from their first byte to the end of their calls. New calls are refused above it. */
  connectionMegabytesMax: 64,
  /** A connection that does not answer a ping for so long is dropped; milliseconds. */
  pingMsMax: 20_000,
  /** A connection without calls is closed after so long; milliseconds. */
  idleConnectionMs: 300_000,
  /** What is still open so long after the door was drained is cut, and so is a connection that we have closed and its client has not; milliseconds. */
  closeMsMax: 3_000,
};

export type GrpcLimits = typeof GRPC_LIMITS;

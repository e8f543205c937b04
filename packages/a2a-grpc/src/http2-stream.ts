import type { ServerHttp2Stream } from 'node:http2';

type Layer = { call?: Layer; nextCall?: Layer; stream?: ServerHttp2Stream };

/**
 * The HTTP/2 stream of a call, or of an interceptor layer below it. grpc-js keeps it private, but this server needs it to see the bytes
 * that a slow client has not read, and to reset one stream of a connection. The version of grpc-js is pinned, and every test of a call runs
 * this code. Throws if another version keeps the stream elsewhere.
 */
export function http2StreamOf(call: object): ServerHttp2Stream {
  let layer: Layer | undefined = (call as Layer).call ?? (call as Layer);
  while (layer?.nextCall !== undefined) layer = layer.nextCall;
  if (layer?.stream === undefined) throw new Error('@grpc/grpc-js has changed: the HTTP/2 stream of a call was not found');
  return layer.stream;
}

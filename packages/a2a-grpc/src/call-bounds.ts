import { constants, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import {
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
  status,
} from '@grpc/grpc-js';
import { http2StreamOf } from './http2-stream.ts';

/**
 * How long an answered request may stay incomplete before it is cut. It is not 0, because a grpc-js client that reads status and reset
 * together reports the reset.
 */
export const ANSWERED_REQUEST_MS_MAX = 1_000;

type CallBounds = {
  /** How long a client has to send its request completely. */
  requestMsMax: number;
  /** How long a client may read nothing of a pending response before its stream is reset. */
  stallMsMax: number;
  /** Maximum bytes of the requests in progress on one connection, each counted from its first byte to the end of its call. */
  connectionBytesMax: number;
};

/**
 * Bounds what a client can occupy: each call has one deadline for its request and one for reading the response, and partial requests are
 * bounded in bytes.
 */
export function callBounds(bounds: CallBounds): ServerInterceptor {
  const loads = new WeakMap<Http2Session, Load>();
  return (_method, call) => {
    const stream = http2StreamOf(call);
    return new ServerInterceptingCall(call, {
      start: next => next(requestListener(call, stream, loadOf(loads, stream), bounds)),
      sendStatus: (sent, next) => {
        next(sent);
        cutWhenStalled(stream, bounds.stallMsMax);
      },
    });
  };
}

function requestListener(
  call: ServerInterceptingCallInterface,
  stream: ServerHttp2Stream,
  load: Load,
  { requestMsMax, connectionBytesMax }: CallBounds,
) {
  let isComplete = false;
  const refuse = (code: status, details: string) => call.sendStatus({ code, details });
  const timer = setTimeout(() => refuse(status.DEADLINE_EXCEEDED, 'the request was not complete in time'), requestMsMax);
  const usage = load.track(stream);
  const check = () => {
    if (load.bytes > connectionBytesMax && !isComplete)
      refuse(status.RESOURCE_EXHAUSTED, 'the requests in progress on this connection are too large together');
  };
  // The library has paused the stream; this listener does not resume it.
  stream.on('data', (chunk: Buffer) => {
    usage.add(chunk.length);
    check();
  });
  return (
    new ServerListenerBuilder()
      .withOnReceiveMessage((message: Buffer, proceed) => {
        // A compressed request counts with its uncompressed length, too.
        usage.atLeast(message.length);
        check();
        proceed(message);
      })
      .withOnReceiveHalfClose(proceed => {
        isComplete = true;
        clearTimeout(timer);
        proceed();
      })
      // Called when the client disconnects, and when the status was sent.
      .withOnCancel(() => {
        clearTimeout(timer);
        if (!isComplete) closeWhenLate(stream);
      })
      .build()
  );
}

/** Bytes of the requests in progress on one connection. */
class Load {
  bytes = 0;

  track(stream: ServerHttp2Stream): { add(bytes: number): void; atLeast(bytes: number): void } {
    let streamBytes = 0;
    const add = (bytes: number) => {
      streamBytes += bytes;
      this.bytes += bytes;
    };
    stream.once('close', () => {
      this.bytes -= streamBytes;
      streamBytes = 0;
    });
    return { add, atLeast: bytes => add(Math.max(0, bytes - streamBytes)) };
  }
}

function loadOf(loads: WeakMap<Http2Session, Load>, { session }: ServerHttp2Stream): Load {
  const load = (session && loads.get(session)) ?? new Load();
  if (session) loads.set(session, load);
  return load;
}

/**
 * Closes a stream whose client received the status before completing its request. Otherwise the stream could stay open indefinitely (RFC
 * 9113 8.1).
 */
function closeWhenLate(stream: ServerHttp2Stream): void {
  if (stream.destroyed) return;
  const late = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), ANSWERED_REQUEST_MS_MAX);
  stream.once('close', () => clearTimeout(late));
}

/** Cuts a stream whose client stops reading: the status is queued behind data that the client has not read. */
function cutWhenStalled(stream: ServerHttp2Stream, stallMsMax: number): void {
  if (stream.destroyed) return;
  let before = stream.writableLength;
  const timer = setInterval(() => {
    if (stream.writableLength >= before) cut(stream);
    before = stream.writableLength;
  }, stallMsMax);
  stream.once('close', () => clearInterval(timer));
}

/** Resets one stream and discards what is buffered for it; the other streams of its connection continue. */
export function cut(stream: ServerHttp2Stream): void {
  stream.close(constants.NGHTTP2_CANCEL);
  stream.destroy();
}

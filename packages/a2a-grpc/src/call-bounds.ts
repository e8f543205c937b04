import { constants, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import {
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
  status,
} from '@grpc/grpc-js';
import { http2StreamOf } from './http2-stream.ts';

/** A request that has its answer and is not complete yet is cut after so long; milliseconds. Not at once: a client of grpc-js that reads status and reset together reports the reset. */
export const ANSWERED_REQUEST_MS_MAX = 1_000;

export type CallBounds = {
  /** A request that is not complete by then ends its call; milliseconds. */
  requestMsMax: number;
  /** A client that takes nothing of the rest of an answer for so long has its stream reset; milliseconds. */
  stallMsMax: number;
  /** Requests under way on one connection, from their first byte to the end of their calls; bytes. */
  connectionBytesMax: number;
};

/** What a client can occupy without an end: a call is over at its deadline, whoever does not send or does not take, and is not kept in half. */
export function callBounds(bounds: CallBounds): ServerInterceptor {
  const loads = new WeakMap<Http2Session, Load>();
  return (_method, call) => {
    const stream = http2StreamOf(call);
    return new ServerInterceptingCall(call, {
      start: next => next(requestListener(call, stream, loadOf(loads, stream), bounds)),
      sendStatus: (told, next) => {
        next(told);
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
  const held = load.hold(stream);
  const check = () => {
    if (load.bytes > connectionBytesMax && !isComplete)
      refuse(status.RESOURCE_EXHAUSTED, 'the requests under way on this connection are too large together');
  };
  // The library has paused the stream: this listener reads nothing by itself.
  stream.on('data', (chunk: Buffer) => {
    held.add(chunk.length);
    check();
  });
  return (
    new ServerListenerBuilder()
      .withOnReceiveMessage((message: Buffer, goOn) => {
        // It came compressed.
        held.atLeast(message.length);
        check();
        goOn(message);
      })
      .withOnReceiveHalfClose(goOn => {
        isComplete = true;
        clearTimeout(timer);
        goOn();
      })
      // Said when the client has gone, and when the status was sent.
      .withOnCancel(() => {
        clearTimeout(timer);
        if (!isComplete) closeWhenLate(stream);
      })
      .build()
  );
}

/** Bytes of the requests that one connection has under way. */
class Load {
  bytes = 0;

  hold(stream: ServerHttp2Stream): { add(bytes: number): void; atLeast(bytes: number): void } {
    let own = 0;
    const add = (bytes: number) => {
      own += bytes;
      this.bytes += bytes;
    };
    stream.once('close', () => {
      this.bytes -= own;
      own = 0;
    });
    return { add, atLeast: bytes => add(Math.max(0, bytes - own)) };
  }
}

function loadOf(loads: WeakMap<Http2Session, Load>, { session }: ServerHttp2Stream): Load {
  const load = (session && loads.get(session)) ?? new Load();
  if (session) loads.set(session, load);
  return load;
}

/** The client has been told the end of its call before it came to the end of its request: otherwise its stream stayed for as long as it likes (RFC 9113 8.1). */
function closeWhenLate(stream: ServerHttp2Stream): void {
  if (stream.destroyed) return;
  const late = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), ANSWERED_REQUEST_MS_MAX);
  stream.once('close', () => clearTimeout(late));
}

/** The status is on its way, behind what the client has not taken yet. */
function cutWhenStalled(stream: ServerHttp2Stream, stallMsMax: number): void {
  if (stream.destroyed) return;
  let before = stream.writableLength;
  const timer = setInterval(() => {
    if (stream.writableLength >= before) cut(stream);
    before = stream.writableLength;
  }, stallMsMax);
  stream.once('close', () => clearInterval(timer));
}

/** Drops one stream with everything that waits for it; others of its connection go on. */
export function cut(stream: ServerHttp2Stream): void {
  stream.close(constants.NGHTTP2_CANCEL);
  stream.destroy();
}

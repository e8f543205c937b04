import { ServerInterceptingCall, type ServerInterceptor, ServerListenerBuilder, status } from '@grpc/grpc-js';

/** Ends a call whose request is not complete after `timeoutMs`: it would hold its place on the connection for ever. */
export function requestDeadline(timeoutMs: number): ServerInterceptor {
  return (_method, call) =>
    new ServerInterceptingCall(call, {
      start: next => {
        const details = 'the request was not complete in time';
        const timer = setTimeout(() => call.sendStatus({ code: status.DEADLINE_EXCEEDED, details }), timeoutMs);
        const done = (goOn: () => void) => {
          clearTimeout(timer);
          goOn();
        };
        next(
          new ServerListenerBuilder()
            .withOnReceiveHalfClose(done)
            .withOnCancel(() => clearTimeout(timer))
            .build(),
        );
      },
    });
}

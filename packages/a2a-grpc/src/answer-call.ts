import { Metadata } from '@grpc/grpc-js';
import { A2AError, type Dialect, type DialectName, namedDialect, operationOf, VERSION_HEADER } from '@hopline/a2a';
import { type A2AServer, type RequestHeaders, report, runOperation, type ServerRequest } from '@hopline/a2a-server';
import { CallStream, lengthPrefixed, type StreamingCall } from './call-stream.ts';
import { GrpcSink } from './grpc-sink.ts';
import { extensionHeaders, failure, headersOf, metadataOf } from './metadata.ts';
import type { Procedure } from './services.ts';

/** Whether `:authority` names this server. */
export type GrpcHosts = { readonly refusal: string; allows(authority: string): boolean };
type AnswerOptions = { card: () => object | Promise<object>; hosts?: GrpcHosts | undefined };
const BINDING = 'grpc' as const;

type ResponseHooks = Pick<ServerRequest, 'openSink' | 'nameExtensions'> & {
  /** The status was sent. */
  isAnswered(): boolean;
};

/**
 * Answers a unary call with one message or a status. Never throws. It is registered as a stream of one message, because only for
 * streams can the server see that the client reads nothing.
 */
export function answerUnary(server: A2AServer, procedure: Procedure, { card, hosts }: AnswerOptions) {
  return async (call: StreamingCall): Promise<void> => {
    const stream = new CallStream(call);
    try {
      requireHost(call, hosts);
      const nameExtensions = (uris: readonly string[]) => stream.begin(metadataOf(extensionHeaders(procedure, uris)));
      const isPublic = procedure.isCard && server.extendedCard === undefined;
      const hooks = { openSink: noStream, nameExtensions, isAnswered: () => stream.answered };
      const message = isPublic ? encoded(procedure, await card()) : await runProcedure(server, procedure, call, hooks);
      if (message === 'streamed') throw new A2AError('INTERNAL_ERROR');
      if (!stream.begun) stream.begin(new Metadata());
      if (await stream.sendAll(message, server.limits.viewerStallMsMax)) stream.end(new Metadata());
      else stream.cut();
    } catch (thrown) {
      stream.fail(refusal(server, procedure, call, thrown));
    }
  };
}

/** Answers a call with a stream of messages, or a status. Never throws. */
export function answerStreaming(server: A2AServer, procedure: Procedure, { hosts }: Pick<AnswerOptions, 'hosts'>) {
  return async (call: StreamingCall): Promise<void> => {
    let stream: CallStream | undefined;
    try {
      requireHost(call, hosts);
      const openSink = (_dialect: Dialect, extensions: readonly string[]) => {
        stream = new CallStream(call);
        return new GrpcSink(stream, procedure, extensions);
      };
      await runProcedure(server, procedure, call, { openSink, isAnswered: () => stream?.answered === true });
    } catch (thrown) {
      // An open stream has sent the error already.
      const status = refusal(server, procedure, call, thrown);
      if (stream === undefined) call.emit('error', status);
    }
  };
}

/** As over HTTP, a web page may have pointed another name at the address of this server. */
function requireHost(call: StreamingCall, hosts: GrpcHosts | undefined): void {
  if (hosts !== undefined && !hosts.allows(call.getHost())) throw new A2AError('PERMISSION_DENIED', { detail: hosts.refusal });
}

async function runProcedure(
  server: A2AServer,
  procedure: Procedure,
  call: StreamingCall,
  { isAnswered, ...hooks }: ResponseHooks,
): ReturnType<typeof runOperation> {
  const { dialect, method } = procedure;
  server.metrics?.received.add(call.request.length);
  const headers = headersOf(call.metadata);
  if (dialect.name === '1.0') requireVersion(headers);
  const params = procedure.params(call.request);
  const closed = new AbortController();
  // grpc-js emits `cancelled` when the client disconnects, when the deadline passes, and after the status was sent.
  call.once('cancelled', () => closed.abort());
  return runOperation(server, operationOf(dialect, method, [dialect]), {
    binding: BINDING,
    dialect,
    params,
    encode: answer => encoded(procedure, answer),
    bytes: call.request.length,
    headers,
    closed: closed.signal,
    isClientGone: () => closed.signal.aborted && !isAnswered(),
    ...hooks,
  });
}

/**
 * No version means 0.3 ([A2A 1.0] 3.6.2), which has its own service. The 0.3 service ignores the version: its name implies it.
 */
function requireVersion(headers: RequestHeaders): void {
  let named: DialectName | undefined;
  try {
    named = namedDialect([headers[VERSION_HEADER]].flat()[0], undefined);
  } catch {
    named = undefined;
  }
  if (named !== '1.0') throw new A2AError('VERSION_NOT_SUPPORTED', { detail: 'this service requires a2a-version: 1.0' });
}

function refusal(server: A2AServer, procedure: Procedure, call: StreamingCall, thrown: unknown): ReturnType<typeof failure> {
  const error = A2AError.from(thrown);
  report(server, error, { binding: BINDING, headers: headersOf(call.metadata) });
  return failure(procedure, error);
}

function encoded(procedure: Procedure, answer: unknown): Buffer {
  return lengthPrefixed(procedure.response(answer));
}

function noStream(): never {
  throw new A2AError('INTERNAL_ERROR');
}

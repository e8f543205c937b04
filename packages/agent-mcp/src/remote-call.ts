import { AsyncLocalStorage } from 'node:async_hooks';
import { hash } from 'node:crypto';
import { isObject } from '@hopline/a2a';
import type { CancelRequest, Turn } from '@hopline/agent';
import { boundedFetch } from '@hopline/outbound-http';
import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/client';
import { MCP_RESPONSE_BYTES_MAX } from './limits.ts';

/**
 * State that another process needs to cancel a call: its request in a session of the server, whose address is hashed because it may hold a
 * secret.
 */
export type RemoteCall = { server: string; session: string; request: RequestId; protocol?: string };

export function isRemoteCall(run: unknown): run is RemoteCall {
  return isObject(run) && typeof run.server === 'string' && typeof run.session === 'string' && run.request !== undefined;
}

export const keyOfCall = ({ session, request }: RemoteCall) => `${session}/${request}`;

export function serverKey(url: string): string {
  return hash('sha256', url).slice(0, 16);
}

type HttpServer = { url: string; headers?: Readonly<Record<string, string>> };

/** Redirects are not followed, because the headers may hold a key. */
const fetchAnswer = boundedFetch({ bytesMax: MCP_RESPONSE_BYTES_MAX, redirectsMax: 0, freshConnections: true });
/** Statuses after which a request is repeated: timeout, too early, too many requests. */
const BUSY: readonly number[] = [408, 425, 429];

/**
 * Sends one `notifications/cancelled`. The SDK sends it too, but only once and only for calls of its own process. A server that no longer
 * knows the session answers 404; the call has then ended with the session.
 */
export function cancelRequest(
  { url, headers }: HttpServer,
  { session, request, protocol }: RemoteCall,
  trace: Turn['trace'],
): CancelRequest {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: request, reason: 'the task has ended' },
  });
  return async signal => {
    const sent = {
      ...headers,
      ...trace,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': session,
      ...(protocol !== undefined && { 'mcp-protocol-version': protocol }),
    };
    const { status, body: answer } = await fetchAnswer(url, { method: 'POST', headers: sent, body, signal });
    await answer?.cancel();
    if (status >= 500 || BUSY.includes(status)) throw new Error(`the MCP server answered with status ${status}`);
  };
}

const sentRequests = new AsyncLocalStorage<(request: RequestId) => void>();

/** Runs a call; `onSent` gets the id that the SDK gives its request. */
export function withRequestId<T>(onSent: (request: RequestId) => void, call: () => Promise<T>): Promise<T> {
  return sentRequests.run(onSent, call);
}

/** Call it with each message that the SDK sends. */
export function noteSent(message: JSONRPCMessage): void {
  if ('id' in message && 'method' in message && message.method === 'tools/call') sentRequests.getStore()?.(message.id);
}

/** The id of the request that the message cancels. */
export function cancelledBy(message: JSONRPCMessage): RequestId | undefined {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return undefined;
  const { requestId } = (message.params ?? {}) as { requestId?: RequestId };
  return requestId;
}

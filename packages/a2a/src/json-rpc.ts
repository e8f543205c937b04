import { A2AError, errorDetails, plainErrorData } from './errors.ts';
import { isDeeperThan, isObject, JSON_DEPTH_MAX } from './json-value.ts';
import type { DialectName } from './version.ts';

/** Echoed with its type. */
export type RpcId = string | number | null;

export type RpcRequest = { id: RpcId; method: string; params: unknown };

export type ParsedRequest = { request: RpcRequest } | { id: RpcId; error: A2AError };

/** Maximum characters of a request id, which is repeated in every frame of a stream. */
export const RPC_ID_CHARS_MAX = 256;

/**
 * Reads one request object. A missing `jsonrpc` is tolerated because some clients omit it; a wrong one is not. A batch is
 * refused: A2A has none, and one HTTP response cannot hold two streams. A request without `id` is answered with `id: null`,
 * because a client that posts over HTTP waits for a response.
 */
export function parseRequest(body: unknown): ParsedRequest {
  if (Array.isArray(body)) return refuse(null, 'batches are not supported; send one request');
  if (!isObject(body)) return refuse(null, 'the body must be an object');
  const { id = null, jsonrpc = '2.0', method, params = {} } = body;
  if (!isId(id)) return refuse(null, `id must be a string of at most ${RPC_ID_CHARS_MAX} characters, a number or null`);
  if (jsonrpc !== '2.0') return refuse(id, 'jsonrpc must be "2.0"');
  if (typeof method !== 'string' || method === '') return refuse(id, 'method must be a non-empty string');
  if (isDeeperThan(params, JSON_DEPTH_MAX)) {
    return { id, error: new A2AError('INVALID_PARAMS', { detail: `params must not nest deeper than ${JSON_DEPTH_MAX} levels` }) };
  }
  return { request: { id, method, params } };
}

function isId(id: unknown): id is RpcId {
  if (typeof id === 'string') return id.length <= RPC_ID_CHARS_MAX;
  return id === null || (typeof id === 'number' && Number.isFinite(id));
}

function refuse(id: RpcId, detail: string): ParsedRequest {
  return { id, error: new A2AError('INVALID_REQUEST', { detail }) };
}

export type RpcFailure = { jsonrpc: '2.0'; id: RpcId; error: { code: number; message: string; data: unknown } };

/** `taskId`: the task as the request names it. Before 1.0 the error contains this id, even if the log has the task under another one. */
export function rpcFailure(id: RpcId, error: A2AError, dialect: DialectName, taskId?: string): RpcFailure {
  const named = taskId !== undefined && { taskId };
  const data = dialect === '1.0' ? errorDetails(error) : { ...plainErrorData(error), ...named };
  return { jsonrpc: '2.0', id, error: { code: error.row.rpc, message: error.message, data } };
}

/** The JSON text of a successful response before and after its result. With it, one encoded result serves any number of callers. */
export function rpcSuccessAround(id: RpcId): { before: string; after: string } {
  return { before: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`, after: '}' };
}

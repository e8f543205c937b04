import type { DecodedEvent } from './dialect.ts';
import { DIALECTS } from './dialects.ts';
import { isObject } from './json-value.ts';
import type { DialectName } from './version.ts';

/** What a foreign agent answered or streamed: an event, something to skip and count, or a JSON-RPC error. `message` of an error is the agent's own text. */
export type RemoteResponse = DecodedEvent | { error: { code: number; message: string; retryable: boolean } };

const WRAPPED = ['task', 'message', 'statusUpdate', 'artifactUpdate'];

/** The dialect of one result, whatever was negotiated: agents exist that answer 1.0 requests in 0.3 and the other way round. */
function resultDialect(result: unknown): DialectName {
  const wrapped = isObject(result) && result.kind === undefined && WRAPPED.some(member => isObject(result[member]));
  return wrapped && isObject(result) && result.status === undefined ? '1.0' : '0.3';
}

/** One result of a foreign agent of A2A 0.2, 0.3 or 1.0 as an event. Never throws (S0-42). */
export function decodeRemoteEvent(result: unknown): DecodedEvent {
  return DIALECTS[resultDialect(result)].decodeEvent(result);
}

/** One JSON-RPC response of a foreign agent, from a frame of a stream or a whole body. */
export function decodeRemoteResponse(response: unknown): RemoteResponse {
  if (!isObject(response)) return { unknown: 'not an object' };
  if (!isObject(response.error)) return decodeRemoteEvent(response.result);
  const { code, message, data } = response.error;
  return {
    error: {
      code: typeof code === 'number' ? code : -32603,
      message: typeof message === 'string' ? message : '',
      retryable: isRetryable(data),
    },
  };
}

/** `data.retryable` of 0.3 (S4-39), or the same in the metadata of a 1.0 detail. */
function isRetryable(data: unknown): boolean {
  const details = Array.isArray(data) ? data.map(detail => (isObject(detail) ? detail.metadata : undefined)) : [data];
  return details.some(detail => isObject(detail) && (detail.retryable === true || detail.retryable === 'true'));
}

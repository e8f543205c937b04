import type { DecodedEvent } from './dialect.ts';
import { DIALECTS } from './dialects.ts';
import { isObject } from './json-value.ts';
import type { DialectName } from './version.ts';

/**
 * One answer or streamed result of a remote agent: an event, a value to skip and count, or a JSON-RPC error whose `message` is the
 * agent's own text.
 */
export type RemoteResponse = DecodedEvent | { error: { code: number; message: string; retryable: boolean } };

const WRAPPED = ['task', 'message', 'statusUpdate', 'artifactUpdate'];

/** The dialect of one result, regardless of the negotiated version: some agents answer 1.0 requests in 0.3, and vice versa. */
function resultDialect(result: unknown): DialectName {
  const wrapped = isObject(result) && result.kind === undefined && WRAPPED.some(member => isObject(result[member]));
  return wrapped && isObject(result) && result.status === undefined ? '1.0' : '0.3';
}

/** Decodes one result of a remote agent of A2A 0.2, 0.3 or 1.0 into an event. Never throws. */
export function decodeRemoteEvent(result: unknown): DecodedEvent {
  return DIALECTS[resultDialect(result)].decodeEvent(result);
}

/** Members whose strings the decoder interprets, or copies unchanged if it does not know them, as for a part of an unknown kind. */
export const INTERPRETED_MEMBERS: ReadonlySet<string> = new Set(['kind', 'type', 'state', 'role']);

/** Decodes one JSON-RPC response of a remote agent, from a frame of a stream or a whole body. */
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

/** `data.retryable` of 0.3, or the same in the metadata of a 1.0 detail. */
function isRetryable(data: unknown): boolean {
  const details = Array.isArray(data) ? data.map(detail => (isObject(detail) ? detail.metadata : undefined)) : [data];
  return details.some(detail => isObject(detail) && (detail.retryable === true || detail.retryable === 'true'));
}

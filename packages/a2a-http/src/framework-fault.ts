import { A2AError } from '@hopline/a2a';
import type { A2AServer } from '@hopline/a2a-server';
import { RefusedRequest } from './request-guard.ts';

/** Maps faults of the framework: too large, wrong content type, truncated. Never exposes an error's own text. */
export function faultOf(server: A2AServer, thrown: { statusCode?: number }): A2AError {
  if (thrown instanceof RefusedRequest) return thrown.error;
  const status = thrown.statusCode ?? 500;
  if (status === 413) {
    return new A2AError('REQUEST_TOO_LARGE', { detail: `the body exceeds ${server.limits.bodyBytesMax} bytes` });
  }
  if (status === 415) return new A2AError('CONTENT_TYPE_NOT_SUPPORTED', { detail: 'the content type must be application/json' });
  if (status < 500) return new A2AError('PARSE_ERROR', { detail: 'the body does not match its headers' });
  return new A2AError('INTERNAL_ERROR', { cause: thrown });
}

/** HTTP status of a request that the guard refused. */
export function refusedStatus(thrown: unknown): number | undefined {
  return thrown instanceof RefusedRequest ? thrown.statusCode : undefined;
}

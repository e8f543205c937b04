import { A2AError } from '@hopline/a2a';
import type { Owner } from '@hopline/events';

export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Identifies the caller from the request's headers and the tenant it names. Rejects with UNAUTHENTICATED or PERMISSION_DENIED.
 * A tenant that is not the caller's is TASK_NOT_FOUND, so that its existence stays hidden.
 */
export type Authenticate = (request: { headers: RequestHeaders; tenant: string | undefined }) => Promise<Owner>;

const ANONYMOUS: Owner = {};

/**
 * With authentication off, all callers count as the same caller, and there are no tenants, because the card names none ([A2A 1.0] 8.3.2).
 */
export const anonymous: Authenticate = async ({ tenant }) => {
  if (tenant !== undefined) throw new A2AError('TASK_NOT_FOUND', { detail: 'unknown tenant' });
  return ANONYMOUS;
};

export function firstOf(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

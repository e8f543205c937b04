import { A2AError } from '@hopline/a2a';
import type { Owner } from '@hopline/events';

export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Tells who asks, from the headers of a request and the tenant it names. Rejects with UNAUTHENTICATED or PERMISSION_DENIED; a tenant that is not the caller's is
 * TASK_NOT_FOUND: "not yours" looks like "not found".
 */
export type Authenticate = (request: { headers: RequestHeaders; tenant: string | undefined }) => Promise<Owner>;

const NOBODY: Owner = {};

/** Nobody is asked who they are, and there are no tenants: a card that names none gets requests that name none ([A2A 1.0] 8.3.2). */
export const anonymous: Authenticate = async ({ tenant }) => {
  if (tenant !== undefined) throw new A2AError('TASK_NOT_FOUND', { detail: 'there is no such tenant here' });
  return NOBODY;
};

export function firstOf(headers: RequestHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

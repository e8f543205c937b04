import { A2AError } from '@hopline/a2a';
import type { Owner } from '@hopline/events';

/** Longest subject, the limit of `sub` in OpenID Connect. */
export const SUBJECT_CHARS_MAX = 255;
/** Longest tenant. */
export const TENANT_CHARS_MAX = 128;

export const isSubject = (value: unknown): value is string => isName(value, SUBJECT_CHARS_MAX);
export const isTenant = (value: unknown): value is string => isName(value, TENANT_CHARS_MAX);

function isName(value: unknown, charsMax: number): value is string {
  return typeof value === 'string' && value.length <= charsMax && value.isWellFormed() && /^[^\p{Cc}]+$/u.test(value);
}

/** Why credentials were refused. Clients learn no more than this. */
export type Refusal = 'expired' | 'key length' | 'not valid';

/** The result of checking one credential. */
export type Verdict = { caller: Owner } | { refusal: Refusal };

export const NOT_VALID: Verdict = { refusal: 'not valid' };

/** Resolves the caller of a request that may name a tenant (in the path, `params.tenant` or a gRPC field; an empty name counts as none). */
type ResolveTenant = (caller: Owner, tenant: string | undefined) => Owner;

/** Tenants come from credentials only. A request may repeat its caller's tenant; any other tenant is not found. */
export const tenantByCredentials: ResolveTenant = (caller, tenant) => {
  if (tenant !== undefined && tenant !== '' && tenant !== caller.tenant) throw notFound();
  return caller;
};

/** Without authentication a tenant only names a set of tasks and does not protect it. Only listed tenants exist. */
export function tenantByList(tenants: readonly string[]): ResolveTenant {
  const known = new Set(tenants.filter(isTenant));
  return (caller, tenant) => {
    if (tenant === undefined || tenant === '') return caller;
    if (!known.has(tenant)) throw notFound();
    return { ...caller, tenant };
  };
}

function notFound(): A2AError {
  return new A2AError('TASK_NOT_FOUND', { detail: 'unknown tenant' });
}

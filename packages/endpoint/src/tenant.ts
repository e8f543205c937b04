import { A2AError } from '@hopline/a2a';
import { type Caller, isTenant } from './caller.ts';

/** The caller of a request that names a tenant, or none (path, `params.tenant`, gRPC field; an empty one is none). */
type ResolveTenant = (caller: Caller, tenant: string | undefined) => Caller;

/** Tenants come from credentials only. A request may repeat the caller's; any other is not found. */
export const tenantByCredentials: ResolveTenant = (caller, tenant) => {
  if (tenant !== undefined && tenant !== '' && tenant !== caller.tenant) throw notFound();
  return caller;
};

/** Without authentication a tenant names a set of tasks and protects nothing: only listed tenants exist. */
export function tenantByList(tenants: readonly string[]): ResolveTenant {
  const known = new Set(tenants.filter(isTenant));
  return (caller, tenant) => {
    if (tenant === undefined || tenant === '') return caller;
    if (!known.has(tenant)) throw notFound();
    return { ...caller, tenant };
  };
}

function notFound(): A2AError {
  return new A2AError('TASK_NOT_FOUND', { detail: 'there is no such tenant' });
}

import { A2AError } from '@hopline/a2a';
import { type Caller, isTenant } from './caller.ts';

/** Who a caller is in a request that names a tenant, or none (path, `params.tenant`, gRPC field; an empty one is none). */
type ResolveTenant = (caller: Caller, tenant: string | undefined) => Caller;

/** Tenants come from credentials alone. A request may repeat its caller's; any other looks as if nothing were there. */
export const tenantByCredentials: ResolveTenant = (caller, tenant) => {
  if (tenant !== undefined && tenant !== '' && tenant !== caller.tenant) throw notFound();
  return caller;
};

/** Where nobody is asked who they are, a tenant is a name for a set of tasks and no protection: only those of the list exist. */
export function tenantByList(tenants: readonly string[]): ResolveTenant {
  const known = new Set(tenants.filter(isTenant));
  return (caller, tenant) => {
    if (tenant === undefined || tenant === '') return caller;
    if (!known.has(tenant)) throw notFound();
    return { ...caller, tenant };
  };
}

function notFound(): A2AError {
  return new A2AError('TASK_NOT_FOUND', { detail: 'there is no such tenant here' });
}

/**
 * The caller of a request, and the owner of the task that the request creates: tenant and subject, as authentication determines them.
 * Without authentication the subject is absent, and a tenant is just a name in the request.
 */
export type Owner = { tenant?: string; subject?: string };

/** Whether two owners are the same. Without authentication there is no owner, and tasks belong to all unauthenticated callers. */
export function isSameOwner(one: Owner | undefined, other: Owner | undefined): boolean {
  return one?.tenant === other?.tenant && one?.subject === other?.subject;
}

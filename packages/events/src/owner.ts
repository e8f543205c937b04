/**
 * The owner of a task: tenant and subject that authentication found in the request that created it. Both are absent where
 * authentication is off.
 */
export type Owner = { tenant?: string; subject?: string };

/** Without authentication there is no owner; tasks created so belong to all unauthenticated callers. */
export function isSameOwner(one: Owner | undefined, other: Owner | undefined): boolean {
  return one?.tenant === other?.tenant && one?.subject === other?.subject;
}

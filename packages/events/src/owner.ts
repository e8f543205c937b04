/**
 * Who a task belongs to: the tenant and the caller that began it, as the door's authentication told them. Both are absent where nobody is asked who they are.
 */
export type Owner = { tenant?: string; subject?: string };

/** An absent owner is that of a door without authentication, and owns what was begun there. */
export function isSameOwner(one: Owner | undefined, other: Owner | undefined): boolean {
  return one?.tenant === other?.tenant && one?.subject === other?.subject;
}

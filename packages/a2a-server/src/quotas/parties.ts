import { isSameOwner, type Owner } from '@hopline/events';

/** Keys of the parties whose limits apply to a caller: the caller itself and, if it has one, its tenant. */
type PartyKeys = { owner: string; tenant: string | undefined };

export function partyKeysOf({ tenant, subject }: Owner): PartyKeys {
  return { owner: JSON.stringify([tenant ?? null, subject ?? null]), tenant };
}

/** The tenant of a caller, or the caller if it has no tenant. Undefined without authentication: all requests then come from one caller. */
export function partyOf(caller: Owner): string | undefined {
  if (isSameOwner(caller, undefined)) return undefined;
  return caller.tenant ?? `:${partyKeysOf(caller).owner}`;
}

import type { Authenticate } from '@hopline/a2a-server';
import type { Owner } from '@hopline/events';

/** Two callers of one tenant, and one of another. */
export const CALLERS = ['acme/ann', 'acme/bob', 'globex/ann'] as const;

/** Requests of a client for the task of another caller. */
export const INTRUSIONS = ['get', 'cancel', 'subscribe', 'resume', 'send', 'fork', 'createPush'] as const;
export type Intrusion = (typeof INTRUSIONS)[number];

/** The credentials of a client: tenant and subject. */
export const CALLER_HEADER = 'x-caller';

export const authenticateCaller: Authenticate = async ({ headers }) => ownerOf(String(headers[CALLER_HEADER]));

export function ownerOf(caller: string): Owner {
  const [tenant, subject] = caller.split('/');
  return { tenant: tenant!, subject: subject! };
}

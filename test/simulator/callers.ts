import { hash } from 'node:crypto';
import { storedTaskId } from '@hopline/a2a';
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

/** The id in the log of a task whose id a client of April 2025 chose. */
export function storedIdOf(chosenId: string, caller: string | undefined): string {
  if (caller === undefined) return storedTaskId(chosenId, undefined);
  const { tenant, subject } = ownerOf(caller);
  return storedTaskId(chosenId, hash('sha256', JSON.stringify([tenant, subject]), 'base64url').slice(0, 22));
}

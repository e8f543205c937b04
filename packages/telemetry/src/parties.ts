import { hash } from 'node:crypto';
import type { HopAttributes } from './hop-span.ts';
import { ATTR } from './names.ts';
import { OTHER, TopNames } from './top-names.ts';

/** Maximum number of tenants, and of callers, that are label values of one process at the same time. All others are `other`. */
export const PARTIES_NAMED_MAX = 20;
/** Label value of a task or request without a tenant, or without authentication. */
const NO_PARTY = 'none';
/** UTF-16 units of a tenant's name in a label. A longer one is `other`. */
const TENANT_UNITS_MAX = 128;
const CALLER_HASH_CHARS = 12;

/** Owner of a task, as authentication determines it. */
export type OwnerNames = { readonly tenant?: string; readonly subject?: string };

/** Values of the labels `tenant` and `caller`. */
export type PartyLabels = { readonly tenant: string; readonly caller: string };

/**
 * A caller as twelve hexadecimal digits, because a subject may be a person's address. The digits are the same in all processes and after
 * restarts, and in metrics, spans and log lines. Undefined without authentication.
 */
function callerHash({ tenant, subject }: OwnerNames): string | undefined {
  if (subject === undefined) return undefined;
  return hash('sha256', JSON.stringify([tenant ?? null, subject])).slice(0, CALLER_HASH_CHARS);
}

/** Attributes of a span for the owner of its task or the caller of its request. */
export function ownerAttributes(owner: OwnerNames = {}): HopAttributes {
  return { [ATTR.tenant]: owner.tenant, [ATTR.caller]: callerHash(owner) };
}

/** The fields of a log line that name an owner. */
export function ownerFields(owner: OwnerNames = {}): { tenant: string | undefined; caller: string | undefined } {
  return { tenant: owner.tenant, caller: callerHash(owner) };
}

/** The labels of owners in this process. The code that measures a task keeps them, so that they are not looked up for each token. */
export class Parties {
  readonly #tenants: TopNames;
  readonly #callers: TopNames;

  /** `onReplaced`: the series of this label value end. */
  constructor(onReplaced: (label: 'tenant' | 'caller', value: string) => void) {
    this.#tenants = new TopNames({ max: PARTIES_NAMED_MAX, onReplaced: name => onReplaced('tenant', name) });
    this.#callers = new TopNames({ max: PARTIES_NAMED_MAX, onReplaced: name => onReplaced('caller', name) });
  }

  /** Call it once for a request or a turn: it counts how busy the owner is. */
  of(owner: OwnerNames = {}): PartyLabels {
    const { tenant } = owner;
    const caller = callerHash(owner);
    return {
      tenant: tenant === undefined ? NO_PARTY : tenant.length > TENANT_UNITS_MAX ? OTHER : this.#tenants.use(tenant),
      caller: caller === undefined ? NO_PARTY : this.#callers.use(caller),
    };
  }

  /** Returns the value itself while it is still a label value, so that a task does not begin the series of its owner again. */
  label(label: 'tenant' | 'caller', value: string): string {
    const names = label === 'tenant' ? this.#tenants : this.#callers;
    return value === NO_PARTY || names.has(value) ? value : OTHER;
  }
}

import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { permits, type WebhookRules } from './webhook-rules.ts';

/** A query of a public name is sent again after this, milliseconds. */
const QUERY_MS_MAX = 2_000;
const QUERIES_MAX = 2;

/** All addresses of a name. */
export type Resolve = (name: string) => Promise<LookupAddress[]>;

/** The name leads, at least in part, where webhooks may not be. */
export class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';
}

/**
 * The lookup of a socket that is being connected: what it returns is what is connected to, so there is no moment in which a name can be pointed elsewhere (DNS rebinding).
 * A name with any forbidden address is refused whole: a mixed answer is an attempt, and which address is tried first is not ours to choose.
 */
export function guardedLookup(rules: WebhookRules, resolve: Resolve = systemResolve(rules)): LookupFunction {
  return (name, options, callback) => {
    resolve(name)
      .then(addresses => chosen(rules, name, addresses, options.family))
      .then(
        addresses =>
          options.all === true ? callback(null, addresses) : callback(null, addresses[0]!.address, addresses[0]!.family),
        error => callback(error, ''),
      );
  };
}

function chosen(rules: WebhookRules, name: string, addresses: LookupAddress[], family: unknown): LookupAddress[] {
  if (!addresses.every(({ address }) => permits(rules, name, address))) {
    throw new ForbiddenAddress('the webhook leads to an address that is not on the public internet');
  }
  const wanted = family === 4 || family === 6 ? addresses.filter(address => address.family === family) : addresses;
  if (wanted.length === 0) throw Object.assign(new Error('the webhook has no address'), { code: 'ENOTFOUND' });
  return wanted;
}

/**
 * Public names are asked of the name servers directly: `getaddrinfo` runs in the process's four threads, and four names whose servers never answer would hold up every
 * other webhook. Names that an operator allows are resolved as the machine does, with its hosts file and search domains.
 */
function systemResolve(rules: WebhookRules): Resolve {
  const resolver = new Resolver({ timeout: QUERY_MS_MAX, tries: QUERIES_MAX });
  return async name => {
    if (rules.allow.hasName(name)) return lookup(name, { all: true });
    const answers = await Promise.allSettled([
      resolver.resolve4(name).then(list => list.map(address => ({ address, family: 4 }))),
      resolver.resolve6(name).then(list => list.map(address => ({ address, family: 6 }))),
    ]);
    const addresses = answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []));
    const [first] = answers;
    if (addresses.length === 0 && first.status === 'rejected') throw first.reason;
    return addresses;
  };
}

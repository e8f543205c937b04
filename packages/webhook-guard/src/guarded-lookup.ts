import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { permits, type WebhookRules } from './webhook-rules.ts';

/** Milliseconds after which an unanswered DNS query is sent again. */
const QUERY_MS_MAX = 2_000;
const QUERIES_MAX = 2;

/** All addresses of a name. */
export type Resolve = (name: string) => Promise<LookupAddress[]>;

/** The name resolves to at least one address that webhooks may not use. */
export class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';
}

/**
 * A `lookup` for `net.connect`: the socket connects to exactly the addresses that it returns, so that a name cannot change between check
 * and connect (DNS rebinding). A name with any forbidden address is rejected as a whole: a mixed answer is an attack, and the socket
 * chooses which address it tries first.
 */
export function guardedLookup(rules: WebhookRules, resolve: Resolve = systemResolve(rules)): LookupFunction {
  return (name, options, callback) => {
    resolve(name)
      .then(addresses => permitted(rules, name, addresses, options.family))
      .then(
        addresses =>
          options.all === true ? callback(null, addresses) : callback(null, addresses[0]!.address, addresses[0]!.family),
        error => callback(error, ''),
      );
  };
}

function permitted(rules: WebhookRules, name: string, addresses: LookupAddress[], family: unknown): LookupAddress[] {
  if (!addresses.every(({ address }) => permits(rules, name, address))) {
    throw new ForbiddenAddress('the webhook resolves to an address that is not on the public internet');
  }
  const wanted = family === 4 || family === 6 ? addresses.filter(address => address.family === family) : addresses;
  if (wanted.length === 0) throw Object.assign(new Error('the webhook host has no address'), { code: 'ENOTFOUND' });
  return wanted;
}

/**
 * Queries the name servers directly for public names: `getaddrinfo` runs in four threads per process, and four names whose
 * servers never answer would block all other webhooks. Allowed names are resolved by the system, with its hosts file and search
 * domains.
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

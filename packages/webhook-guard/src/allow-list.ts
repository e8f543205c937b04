import { type BlockList, isIP } from 'node:net';
import { addressList, familyOf } from './public-address.ts';

/** Maximum entries of one allow-list. */
export const ALLOW_ENTRIES_MAX = 256;

const HOST = /^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;

/** Names and addresses that an operator allows although they are not public. */
export class AllowList {
  readonly #names: ReadonlySet<string>;
  /** `.example.com` for `*.example.com`. */
  readonly #suffixes: readonly string[];
  readonly #addresses: BlockList;

  /**
   * Entries separated by commas: a host name (`hooks.internal`), every name below one (`*.svc.cluster.local`), an address or a
   * CIDR block (`10.1.0.0/16`, `fd00::/8`). Throws TypeError on any other entry, because a rule without effect would only be
   * found in an incident.
   */
  constructor(text = '') {
    const entries = text
      .split(',')
      .map(entry => entry.trim().toLowerCase())
      .filter(entry => entry !== '');
    if (entries.length > ALLOW_ENTRIES_MAX) throw new TypeError(`an allow-list has at most ${ALLOW_ENTRIES_MAX} entries`);
    const blocks = entries.flatMap(entry => blockOf(entry) ?? []);
    const names = entries.filter(entry => blockOf(entry) === undefined).map(requireHost);
    this.#addresses = addressList(blocks);
    this.#names = new Set(names.filter(name => !name.startsWith('*')));
    this.#suffixes = names.filter(name => name.startsWith('*')).map(name => name.slice(1));
  }

  /** `name` in lower case, as in a URL. A trailing dot is ignored. */
  hasName(name: string): boolean {
    const plain = name.replace(/\.$/, '');
    return this.#names.has(plain) || this.#suffixes.some(suffix => plain.endsWith(suffix));
  }

  hasAddress(address: string): boolean {
    return isIP(address) !== 0 && this.#addresses.check(address, familyOf(address));
  }
}

function blockOf(entry: string): string | undefined {
  const [address = '', prefix, more] = entry.split('/');
  const family = isIP(address);
  if (family === 0) return undefined;
  const bits = family === 4 ? 32 : 128;
  if (prefix === undefined) return `${address}/${bits}`;
  if (more !== undefined || !/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) throw invalidEntry(entry);
  return entry;
}

function requireHost(entry: string): string {
  const name = entry.replace(/\.$/, '');
  // URL parsers read a name whose last label is a number as an IPv4 address (127.1, 0x7f000001).
  if (name.length > 253 || !HOST.test(name) || /(^|\.)(\d+|0x[0-9a-f]*)$/.test(name)) throw invalidEntry(entry);
  return name;
}

function invalidEntry(entry: string): TypeError {
  return new TypeError(`${JSON.stringify(entry)} is not a host name, address or CIDR block`);
}

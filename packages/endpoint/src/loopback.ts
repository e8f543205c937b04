import { BlockList, isIP } from 'node:net';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/**
 * Whether an address to listen on is reachable from this machine only. Names count as public, except `localhost`: their
 * resolution is not controlled here.
 */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  const version = isIP(bare);
  if (version === 0) return bare === 'localhost';
  return LOOPBACK.check(bare, version === 4 ? 'ipv4' : 'ipv6');
}

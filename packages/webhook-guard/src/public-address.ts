import { BlockList, isIP } from 'node:net';

/**
 * IPv4 ranges that are not public: the IANA special-purpose registry
 * (https://www.iana.org/assignments/iana-ipv4-special-registry), which includes the addresses where cloud providers serve
 * metadata and credentials (169.254.169.254, 100.100.100.200), and one more address of a cloud provider.
 */
const IPV4_NOT_PUBLIC = [
  '0.0.0.0/8', // this network, unspecified
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's WireServer: public by its number, and gives a virtual machine its certificates
  '169.254.0.0/16', // link-local, metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
] as const;

/**
 * For IPv6 only global unicast is public. Addresses that embed IPv4 (mapped, compatible, NAT64 64:ff9b::/96 and 64:ff9b:1::/48),
 * unique-local, link-local, site-local, multicast and unassigned ones need no entry to be rejected.
 */
const IPV6_PUBLIC = ['2000::/3'] as const;
const IPV6_NOT_PUBLIC = [
  '2001::/23', // protocol assignments: Teredo (embeds IPv4), ORCHID, benchmarks
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: embeds IPv4
  '3fff::/20', // documentation
] as const;

/** Throws on an invalid CIDR block. */
export function addressList(blocks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const block of blocks) {
    const [address = '', prefix] = block.split('/');
    list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return list;
}

export const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** Made at the first use, because Node compiles its pattern of IPv6 addresses then, which takes 10 ms of CPU. */
let ranges: { ipv4NotPublic: BlockList; ipv6Public: BlockList; ipv6NotPublic: BlockList } | undefined;

function rangesOf(): NonNullable<typeof ranges> {
  ranges ??= {
    ipv4NotPublic: addressList(IPV4_NOT_PUBLIC),
    ipv6Public: addressList(IPV6_PUBLIC),
    ipv6NotPublic: addressList(IPV6_NOT_PUBLIC),
  };
  return ranges;
}

/** True for an address on the public internet; false for text that is not an address. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !rangesOf().ipv4NotPublic.check(address, 'ipv4');
    case 6:
      return rangesOf().ipv6Public.check(address, 'ipv6') && !rangesOf().ipv6NotPublic.check(address, 'ipv6');
    default:
      return false;
  }
}

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { isPublicAddress } from './public-address.ts';

/** First and last address of each rejected range, and its neighbours. */
const IPV4: Record<string, { inside: string[]; outside: string[] }> = {
  'this network': { inside: ['0.0.0.0', '0.255.255.255'], outside: ['1.0.0.0'] },
  'private 10/8': { inside: ['10.0.0.0', '10.255.255.255'], outside: ['9.255.255.255', '11.0.0.0'] },
  'carrier-grade NAT': {
    inside: ['100.64.0.0', '100.100.100.200', '100.127.255.255'],
    outside: ['100.63.255.255', '100.128.0.0'],
  },
  loopback: { inside: ['127.0.0.0', '127.0.0.1', '127.255.255.255'], outside: ['126.255.255.255', '128.0.0.0'] },
  'WireServer of Azure': { inside: ['168.63.129.16'], outside: ['168.63.129.15', '168.63.129.17'] },
  'link-local and metadata': {
    inside: ['169.254.0.0', '169.254.169.254', '169.254.255.255'],
    outside: ['169.253.255.255', '169.255.0.0'],
  },
  'private 172.16/12': { inside: ['172.16.0.0', '172.31.255.255'], outside: ['172.15.255.255', '172.32.0.0'] },
  'protocol assignments': { inside: ['192.0.0.0', '192.0.0.255'], outside: ['191.255.255.255', '192.0.1.0'] },
  'documentation 1': { inside: ['192.0.2.0', '192.0.2.255'], outside: ['192.0.3.0'] },
  '6to4 relays': { inside: ['192.88.99.0', '192.88.99.255'], outside: ['192.88.98.255', '192.88.100.0'] },
  'private 192.168/16': { inside: ['192.168.0.0', '192.168.255.255'], outside: ['192.167.255.255', '192.169.0.0'] },
  benchmarks: { inside: ['198.18.0.0', '198.19.255.255'], outside: ['198.17.255.255', '198.20.0.0'] },
  'documentation 2': { inside: ['198.51.100.0', '198.51.100.255'], outside: ['198.51.99.255', '198.51.101.0'] },
  'documentation 3': { inside: ['203.0.113.0', '203.0.113.255'], outside: ['203.0.112.255', '203.0.114.0'] },
  'multicast and reserved': {
    inside: ['224.0.0.0', '239.255.255.255', '240.0.0.0', '255.255.255.255'],
    outside: ['223.255.255.255'],
  },
};

suite('IPv4 ranges that are not public', () => {
  for (const [what, { inside, outside }] of Object.entries(IPV4)) {
    test(what, () => {
      for (const address of inside) assert.equal(isPublicAddress(address), false, address);
      for (const address of outside) assert.equal(isPublicAddress(address), true, address);
    });
  }
});

const IPV6_REJECTED: Record<string, string[]> = {
  unspecified: ['::'],
  loopback: ['::1'],
  'IPv4-mapped': ['::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:8.8.8.8', '::ffff:7f00:1'],
  'IPv4-compatible, deprecated': ['::127.0.0.1', '::8.8.8.8'],
  'NAT64, well-known and local': ['64:ff9b::7f00:1', '64:ff9b::808:808', '64:ff9b:1::a00:1'],
  'discard-only': ['100::1'],
  'Teredo, ORCHID, benchmarks': ['2001::1', '2001:10::1', '2001:20::1', '2001:2::1', '2001:1ff:ffff::'],
  documentation: ['2001:db8::1', '3fff::1', '3fff:fff:ffff::'],
  '6to4, which embeds IPv4': ['2002:7f00:1::', '2002:808:808::'],
  unassigned: ['4000::1', '8000::1'],
  'unique-local': ['fc00::1', 'fd00:ec2::254', 'fdff::1'],
  'link-local, with and without a zone': ['fe80::1', 'fe80::1%eth0', 'febf::1'],
  'site-local, deprecated': ['fec0::1'],
  multicast: ['ff00::1', 'ff02::1'],
};

suite('IPv6 ranges that are not public', () => {
  for (const [what, addresses] of Object.entries(IPV6_REJECTED)) {
    test(what, () => {
      for (const address of addresses) assert.equal(isPublicAddress(address), false, address);
    });
  }
  test('global unicast is public', () => {
    for (const address of ['2001:4860:4860::8888', '2606:4700::1111', '2a00:1450::1', '2001:200::1', '3ffe::1'])
      assert.equal(isPublicAddress(address), true, address);
  });
});

test('text that is not an address is not public', () => {
  for (const text of ['', 'localhost', '127.1', '2130706433', '1.2.3.4.5', '8.8.8.8 ', '[::1]'])
    assert.equal(isPublicAddress(text), false, text);
});

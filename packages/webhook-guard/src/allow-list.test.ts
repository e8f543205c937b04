import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALLOW_ENTRIES_MAX, AllowList } from './allow-list.ts';

test('an empty list allows nothing', () => {
  for (const list of [new AllowList(), new AllowList(' , ')]) {
    assert.equal(list.hasName('localhost'), false);
    assert.equal(list.hasAddress('127.0.0.1'), false);
    assert.equal(list.hasAddress('::'), false);
  }
});

test('names match exactly or below a domain, in any case, with or without a trailing dot', () => {
  const list = new AllowList('Hooks.Internal, *.svc.cluster.local,localhost.');
  for (const name of ['hooks.internal', 'hooks.internal.', 'a.svc.cluster.local', 'a.b.svc.cluster.local.', 'localhost'])
    assert.equal(list.hasName(name), true, name);
  for (const name of ['internal', 'xhooks.internal', 'hooks.internal.evil.example', 'svc.cluster.local', 'asvc.cluster.local'])
    assert.equal(list.hasName(name), false, name);
  assert.equal(list.hasAddress('127.0.0.1'), false);
});

test('addresses and CIDR blocks of both families match up to their edges', () => {
  const list = new AllowList('10.1.0.0/16,192.168.7.9,fd00::/8,::1');
  for (const address of ['10.1.0.0', '10.1.255.255', '192.168.7.9', 'fd00::', 'fdff:ffff::1', '::1', '::ffff:10.1.2.3'])
    assert.equal(list.hasAddress(address), true, address);
  for (const address of ['10.0.255.255', '10.2.0.0', '192.168.7.8', 'fc00::', 'fe00::', '::2', 'hooks', ''])
    assert.equal(list.hasAddress(address), false, address);
});

test('an invalid entry and a list that is too long throw TypeError', () => {
  for (const entry of [
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    'fd00::/129',
    'https://hooks.example',
    'hooks.example:8080',
    'hooks.example/path',
    '*',
    '*.*.example',
    'a..b',
    '-a.example',
    '127.1',
    '2130706433',
    '0x7f000001',
    'a'.repeat(254),
  ])
    assert.throws(() => new AllowList(entry), TypeError, entry);
  const entries = Array.from({ length: ALLOW_ENTRIES_MAX }, (_, index) => `h${index}.example`);
  assert.equal(new AllowList(entries.join()).hasName('h255.example'), true);
  assert.throws(() => new AllowList([...entries, 'one.more'].join()), TypeError);
});

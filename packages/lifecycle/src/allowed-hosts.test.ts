import assert from 'node:assert/strict';
import test from 'node:test';
import { ALLOWED_HOSTS_FORM, ALLOWED_HOSTS_MAX, AllowedHosts } from './allowed-hosts.ts';

const hosts = new AllowedHosts('hopline-ingress, Hopline.example', ['https://public.example:8443/a2a', 'grpc.example:8001']);

const ALLOWED = [
  'localhost',
  'LocalHost:8000',
  'localhost.',
  '127.0.0.1',
  '127.0.0.1:8000',
  '127.9.9.9:1',
  '[::1]',
  '[::1]:8000',
  '10.0.0.7:8000',
  '[fd00::7]:8000',
  'hopline-ingress:8000',
  'HOPLINE.example.',
  'public.example',
  'public.example:1',
  'grpc.example',
];
const REFUSED = [
  'evil.example',
  'evil.example:8000',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  'evil.example#localhost',
  'evil.example/localhost',
  'localhost@evil.example',
  'evil.example:80@localhost',
  'a.localhost',
  'sub.hopline.example',
  'hopline.example..',
  'hopline-ingress.evil.example',
  '0x7f.1',
  '2130706433',
  '127.1',
  '::1',
  '[::1',
  '[evil.example]',
  'localhost,evil.example',
  'localhost evil.example',
  'localhost:80:80',
  '',
  '.',
  ':8000',
];

for (const authority of ALLOWED) test(`allowed as Host: ${authority}`, () => assert.equal(hosts.allows(authority), true));
for (const authority of REFUSED)
  test(`refused as Host: ${JSON.stringify(authority)}`, () => assert.equal(hosts.allows(authority), false));

test('every Host header of a request, and the authority of an absolute target, must be allowed', () => {
  const allows = (url: string, ...host: string[]) =>
    hosts.allowsRequest({ url, headersDistinct: host.length > 0 ? { host } : {} });
  assert.equal(allows('/', 'localhost'), true);
  assert.equal(allows('/'), true, 'HTTP/1.0 without Host: no browser');
  assert.equal(allows('/', 'localhost', 'evil.example'), false);
  assert.equal(allows('http://evil.example/', 'localhost'), false);
  assert.equal(allows('HTTP://localhost:8000/tasks', 'localhost'), true);
  assert.equal(allows('/?url=http://evil.example/', 'localhost'), true);
});

test('* allows every name', () => assert.equal(new AllowedHosts('*').allows('evil.example'), true));

test('the setting is a list of names in any case, up to the limit, and nothing else', () => {
  const { pattern } = ALLOWED_HOSTS_FORM;
  const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`).join();
  for (const right of ['*', 'A.example, b_c ,d-1', names(ALLOWED_HOSTS_MAX)]) assert.match(right, pattern);
  for (const wrong of [
    names(ALLOWED_HOSTS_MAX + 1),
    '',
    'a,,b',
    'a:80',
    'http://a',
    '*.a',
    'a,*',
    'a/b',
    '-a',
    'a-',
    'a..b',
    '.a',
  ])
    assert.doesNotMatch(wrong, pattern);
});

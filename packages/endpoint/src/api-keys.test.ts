import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import { API_KEY_CHARS_MAX, API_KEY_CHARS_MIN, API_KEYS_MAX, parseApiKeys, verdictOnKey } from './api-keys.ts';

const entry = (key: string, more: object = {}) => ({ key_sha256: hash('sha256', key), subject: 'ci', ...more });
const keysOf = (...entries: unknown[]) => parseApiKeys(JSON.stringify(entries));
const key = (chars: number) => 'k'.repeat(chars);

test('a key identifies its caller; another key, or the hash itself, does not', () => {
  const keys = keysOf(entry(key(32)), entry(key(33), { subject: 'ops', tenant: 'acme' }));
  assert.deepEqual(verdictOnKey(keys, key(32)), { caller: { subject: 'ci' } });
  assert.deepEqual(verdictOnKey(keys, key(33)), { caller: { subject: 'ops', tenant: 'acme' } });
  for (const wrong of [key(34), hash('sha256', key(32))]) assert.deepEqual(verdictOnKey(keys, wrong), { refusal: 'not valid' });
});

test('the limits of a key’s length and of the number of keys hold at their edges', () => {
  const lengths = [API_KEY_CHARS_MIN - 1, API_KEY_CHARS_MIN, API_KEY_CHARS_MAX, API_KEY_CHARS_MAX + 1];
  const taken = lengths.map(chars => 'caller' in verdictOnKey(keysOf(entry(key(chars))), key(chars)));
  assert.deepEqual(taken, [false, true, true, false]);
  const many = (count: number) => keysOf(...Array.from({ length: count }, (_, n) => entry(`key-${n}`)));
  assert.equal(many(API_KEYS_MAX).length, API_KEYS_MAX);
  assert.throws(() => many(API_KEYS_MAX + 1), /more than 1000 keys/);
});

test('the error for an invalid file names the position without quoting it', () => {
  const cases: [text: string, expected: RegExp][] = [
    ['SECRET', /^the file must be JSON$/],
    ['{"SECRET":1}', /^the file must be an array of keys$/],
    ['[7]', /^key 1 must be an object$/],
    [JSON.stringify([entry('a'), { ...entry('b'), key: 'SECRET' }]), /^key 2 has an unknown field/],
    ['[{"key_sha256":"SECRET","subject":"x"}]', /^key 1: key_sha256 must be/],
    [JSON.stringify([entry('a', { subject: '' })]), /^key 1: subject must be/],
    [JSON.stringify([entry('a', { tenant: 7 })]), /^key 1: tenant must be/],
    [JSON.stringify([entry('a'), entry('a', { subject: 'other' })]), /^the file contains the same key twice$/],
  ];
  for (const [text, expected] of cases) {
    assert.throws(
      () => parseApiKeys(text),
      (error: Error) => expected.test(error.message) && !error.message.includes('SECRET'),
    );
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HEADER_VALUE, unsendableHeader } from './header-value.ts';

test('a header value is visible ASCII with inner blanks, and fetch accepts each', () => {
  for (const value of ['a', 'Bearer a.b-c', 'a\tb', '!~']) {
    assert.match(value, HEADER_VALUE);
    assert.equal(new Headers({ x: value }).get('x'), value);
  }
  for (const value of ['', ' a', 'a ', 'a\n', 'a\r\nb: c', 'a\0', 'é', '“key”', '\u{1f511}', '\x7f'])
    assert.doesNotMatch(value, HEADER_VALUE);
});

test('the first header that cannot be sent is named', () => {
  assert.equal(unsendableHeader({ a: 'b', c: '' }), undefined);
  assert.equal(unsendableHeader({ a: 'b', 'x key': 'c' }), 'x key');
  assert.equal(unsendableHeader({ a: 'b', 'x-key': '“c”', d: '\n' }), 'x-key');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { OrderedText } from './ordered-text.ts';

test('a text that begins while another is open waits for its end', () => {
  const texts = new OrderedText();
  assert.deepEqual(
    [texts.add('a', '1'), texts.add('b', '3'), texts.add('a', '2'), texts.end('a'), texts.add('b', '4'), texts.endWith('?')],
    ['1', '', '2', '3', '4', '\n\n?'],
  );
  assert.equal(texts.whole, '1234\n\n?');
});

test('a text that was shown and is taken back is marked void, and the whole answer follows', () => {
  const texts = new OrderedText();
  texts.add('a', 'old');
  texts.end('a');
  texts.add('b', 'kept');
  assert.equal(texts.restart('a', 'new'), '\n\n[The agent began again. The text above is void.]\n\nnewkept');
  assert.equal(texts.whole, 'newkept');
  assert.equal(texts.add('c', 'x') + texts.restart('c', 'y') + texts.end('b'), 'y');
});

test('the text after the last mark is the whole answer, in order', () => {
  const step = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.string());
  fc.assert(
    fc.property(fc.array(step), steps => {
      const texts = new OrderedText();
      let out = '';
      for (const [id, delta] of steps) out += delta === '' ? texts.end(id) : texts.add(id, delta);
      out += texts.endWith('?');
      assert.equal(out.split('text above is void.]\n\n').at(-1), texts.whole);
    }),
  );
});

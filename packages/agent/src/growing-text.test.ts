import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { LaneText } from './growing-text.ts';
import { TextStreams } from './text-streams.ts';

test('an equal snapshot changes nothing, a longer one adds its rest, and any other replaces the text', () => {
  const content = new LaneText();
  assert.deepEqual(content.token('one'), { replace: false, text: 'one' });
  assert.equal(content.snapshot('one'), undefined);
  assert.deepEqual(content.snapshot('one two'), { replace: false, text: ' two' });
  assert.deepEqual(content.snapshot('three'), { replace: true, text: 'three' });
  assert.deepEqual(content.snapshot(''), { replace: true, text: '' });
  assert.equal(content.token(''), undefined);
});

test('any sequence of tokens and snapshots folds to the intended text', () => {
  const step = fc.record({
    snapshot: fc.boolean(),
    text: fc.string({ unit: fc.constantFrom('a', 'b', '\ud83d', '\ude80', ' '), maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.array(step), steps => {
      const content = new LaneText();
      let shown = '';
      let meant = '';
      for (const { snapshot, text } of steps) {
        meant = snapshot ? text : meant + text;
        const change = snapshot ? content.snapshot(text) : content.token(text);
        if (change) shown = change.replace ? change.text : shown + change.text;
      }
      assert.equal(shown, meant);
      assert.equal(content.text, meant);
    }),
  );
});

test('a stream whose lane another stream has taken over uses no memory', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const lanes = { open: () => {}, token: () => {}, write: () => {} };
  const streams = new TextStreams({ lanes, lane: 'answer', header: () => ({}), shared: true });
  const ended = 2_000;
  const name = (index: number) => Buffer.alloc(10_000, `${index} `).toString();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < ended; index += 1) {
    streams.token('a', name(index), {});
    streams.end(name(index));
  }
  collect();
  const bytes = process.memoryUsage().heapUsed - before;
  assert.equal(streams.all.length, 1);
  assert.ok(bytes < (ended * 10_000) / 4, `${bytes} bytes`);
});

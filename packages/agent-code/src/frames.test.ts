import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FrameReader, frameOf, isParsable, ProtocolFault, STRUCTURE_MAX } from './frames.ts';

test('documents arrive whole, however the stream is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1, unit: 'grapheme' })), fc.array(fc.nat(40)), (documents, cuts) => {
      const stream = Buffer.concat(documents.map(frameOf));
      const reader = new FrameReader(1_000);
      const found: string[] = [];
      let at = 0;
      for (const cut of [...cuts, stream.length]) {
        for (const document of reader.read(stream.subarray(at, at + cut))) found.push(document.toString('utf8'));
        at = Math.min(stream.length, at + cut);
      }
      assert.deepEqual(found, documents);
    }),
  );
});

test('a frame that is empty or too long is refused before its bytes arrive', () => {
  for (const bytes of [0, 1_001, 0xffff_ffff]) {
    const header = Buffer.alloc(4);
    header.writeUInt32LE(bytes);
    assert.throws(() => new FrameReader(1_000).read(header), ProtocolFault);
  }
});

test('a large document may have many characters, but not many values', () => {
  const text = JSON.stringify(['",[{'.repeat(STRUCTURE_MAX)]);
  assert.ok(isParsable(Buffer.from(text)));
  const brackets = Buffer.from(`[${'[],'.repeat(STRUCTURE_MAX)}0]`);
  assert.ok(!isParsable(brackets));
});

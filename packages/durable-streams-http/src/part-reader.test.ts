import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SinkItem } from '@hopline/a2a-http/front';
import { PART_BYTES_MAX, PartReader } from './part-reader.ts';
import { messageOf } from './stream-message.ts';

const GENERATION = 41;

/** An event whose message has exactly this many UTF-8 bytes. */
function itemOf(bytes: number, fill = 'x'): SinkItem {
  const eventOf = (text: string) => ({
    artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts: [{ text }] } },
  });
  const empty = Buffer.byteLength(messageOf(eventOf(''), GENERATION));
  const each = Buffer.byteLength(fill);
  const count = Math.floor((bytes - empty) / each);
  const item = {
    event: eventOf(fill.repeat(count) + 'x'.repeat(bytes - empty - count * each)),
    cursor: `${GENERATION}.${GENERATION}`,
  };
  return item as unknown as SinkItem;
}

function readerOf(): PartReader {
  const reader = new PartReader({ generation: 0, seq: 0 }, { waits: false });
  assert.equal(reader.begin({ generation: 50, seq: 50, ended: false }), false);
  return reader;
}

test('a part ends with the message that reaches PART_BYTES_MAX, counted in UTF-8', () => {
  for (const fill of ['x', '🎯']) {
    const below = readerOf();
    assert.equal(below.add(itemOf(PART_BYTES_MAX - 200, fill), false), false);
    assert.equal(below.add(itemOf(199), false), false, 'one byte below the limit');
    assert.equal(below.add(itemOf(200), false), true);
    assert.equal(below.messages.length, 3);
    const reached = readerOf();
    assert.equal(reached.add(itemOf(PART_BYTES_MAX, fill), false), true, 'exactly the limit');
    assert.deepEqual([reached.isUpToDate, reached.isClosed], [false, false]);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { collect } from '../../../test/kit/collect.ts';
import { A2AError } from './errors.ts';
import { decodeSse, decodeSseBatches, type SseEvent, sseComment, sseFrame } from './sse.ts';

async function* bytes(text: string, cuts: number[] = []): AsyncGenerator<Uint8Array> {
  const all = Buffer.from(text, 'utf8');
  const places = [...new Set(cuts.map(cut => cut % (all.length + 1)))].sort((a, b) => a - b);
  for (const [index, place] of [...places, all.length].entries()) yield all.subarray(places[index - 1] ?? 0, place);
}

async function decoded(text: string, cuts?: number[], max?: number): Promise<SseEvent[]> {
  const events = await collect(decodeSse(bytes(text, cuts), max));
  return events;
}

test('a frame is one line of data and ends with an empty one [S2-26]', () => {
  assert.equal(sseFrame({ id: '3.17', data: '{"a":1}' }), 'id: 3.17\ndata: {"a":1}\n\n');
  assert.equal(sseFrame({ event: 'gap', data: 'a\r\nb\nc\rd' }), 'event: gap\ndata: a\ndata: b\ndata: c\ndata: d\n\n');
  assert.equal(sseFrame({ retryMs: 500, event: 'drain', data: '' }), 'retry: 500\nevent: drain\ndata: \n\n');
  assert.equal(sseComment('ok'), ': ok\n\n');
});

test('the decoder accepts CRLF, CR, comments, several data lines and a byte order mark, and drops a truncated frame [S2-26]', async () => {
  assert.deepEqual(await decoded('\uFEFF: hi\r\ndata: a\r\ndata: b\r\n\r\nid:7\rdata:c\r\rdata: cut'), [
    { data: 'a\nb' },
    { data: 'c', id: '7' },
  ]);
  assert.deepEqual(await decoded('event: x\n\nretry: 5\n\ndata\n\n:\n\n'), [{ data: '' }]);
});

test('any text in any frame survives any split and any line end [S2-26]', async () => {
  const data = fc.string({ unit: 'binary' }).map(text => JSON.stringify(text));
  const frames = fc.array(fc.record({ data, id: fc.option(fc.stringMatching(/^\d{1,4}\.\d{1,4}$/), { nil: undefined }) }), {
    maxLength: 5,
  });
  await fc.assert(
    fc.asyncProperty(frames, fc.array(fc.nat()), fc.boolean(), async (list, cuts, crlf) => {
      const written = list
        .map(({ data, id }) => sseComment('keep-alive') + sseFrame({ data, ...(id !== undefined && { id }) }))
        .join('');
      const read = await decoded(crlf ? written.replaceAll('\n', '\r\n') : written, cuts);
      assert.deepEqual(
        read.map(event => ({ data: event.data, id: event.id })),
        list.map(({ data, id }) => ({ data, id })),
      );
    }),
  );
});

test('an event of the maximum size is accepted, one byte more is refused, whole or in pieces, whatever its characters are', async () => {
  const refused = (error: unknown) => error instanceof A2AError && error.code === 'INVALID_AGENT_RESPONSE';
  for (const character of ['x', 'ü', '水', '😀']) {
    const data = character.repeat(1200 / Buffer.byteLength(character));
    for (const cuts of [[], [7, 600, 1205], [1206]]) {
      assert.deepEqual(await decoded(`data: ${data}\n\n`, cuts, 1200), [{ data }]);
      await assert.rejects(decoded(`data: ${data}.\n\n`, cuts, 1200), refused);
    }
  }
  await assert.rejects(decoded(`data: ${'x'.repeat(5000)}`, [1500, 3000], 1000), refused);
});

test('events of one chunk are yielded together, in order; a chunk that completes no event yields nothing', async () => {
  const chunks = ['data: a\n\ndata: b\n\nda', 'ta: ', 'c\n\n'].map(text => new TextEncoder().encode(text));
  const batches: string[][] = [];
  for await (const events of decodeSseBatches(ReadableStream.from(chunks))) batches.push(events.map(({ data }) => data));
  assert.deepEqual(batches, [['a', 'b'], ['c']]);
});

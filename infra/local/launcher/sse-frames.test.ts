import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSseFrames, type SseFrame } from './sse-frames.ts';

async function framesOf(bytes: Uint8Array, size: number): Promise<SseFrame[]> {
  async function* body() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const frames: SseFrame[] = [];
  for await (const frame of readSseFrames(body())) frames.push(frame);
  return frames;
}

test('frames are the same wherever the network cut them, also inside a character', async () => {
  const text = ': ok\n\nid: t.1\ndata: {"t":"🔧 ✅"}\n\nevent: x\ndata:a\ndata: b\r\n\r\ndata: cut off';
  const expected = [
    { id: 't.1', data: '{"t":"🔧 ✅"}' },
    { id: null, data: 'a\nb' },
  ];
  const bytes = new TextEncoder().encode(text);
  for (let size = 1; size <= bytes.length; size += 1)
    assert.deepEqual(await framesOf(bytes, size), expected, `pieces of ${size}`);
});

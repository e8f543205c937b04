/** One frame of a server-sent event stream: its `id` (the cursor of the task) and its data. */
export type SseFrame = { id: string | null; data: string };

/** A frame of this size is no frame of ours. */
const FRAME_CHARS_MAX = 16 * 1024 * 1024;

/** Splits a response body into frames; comments (heartbeats) and other fields are skipped. */
export async function* readSseFrames(body: AsyncIterable<Uint8Array>): AsyncGenerator<SseFrame> {
  const decoder = new TextDecoder();
  let pending = '';
  for await (const bytes of body) {
    pending += decoder.decode(bytes, { stream: true });
    const blocks = pending.split(/\r?\n\r?\n/);
    pending = blocks.pop() ?? '';
    if (pending.length > FRAME_CHARS_MAX) throw new Error(`a frame is longer than ${FRAME_CHARS_MAX} characters`);
    for (const block of blocks) {
      const frame = parseFrame(block);
      if (frame) yield frame;
    }
  }
}

function parseFrame(block: string): SseFrame | null {
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith('id:')) id = line.slice(3).trim();
    else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
  }
  return data.length === 0 ? null : { id, data: data.join('\n') };
}

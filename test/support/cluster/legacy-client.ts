import assert from 'node:assert/strict';
import { decodeSse } from '@hopline/a2a';

/** A client of the April 2025 dialect, written from its specification with `fetch` and JSON, without code under test. */

// biome-ignore lint/suspicious/noExplicitAny: a test fails where an expected member is missing.
export type Json = { [name: string]: any };
export type Frame = { id: string | undefined; data: Json; atMs: number };

/** Params of tasks/send and tasks/sendSubscribe with one text part. */
export const ask = (id: string, text: string, more: Json = {}) => ({
  id,
  message: { role: 'user', parts: [{ type: 'text', text }] },
  ...more,
});

type Options = { id?: string; signal?: AbortSignal; lastEventId?: string };

export function post(url: string, method: string, params: Json, options: Options = {}): Promise<Response> {
  const { id = 'req-1', signal = null, lastEventId } = options;
  const headers = { 'content-type': 'application/json', ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) };
  const body = JSON.stringify({ jsonrpc: '2.0', method, id, params });
  return fetch(`${url}/a2a`, { method: 'POST', headers, body, signal });
}

export async function rpc(...args: Parameters<typeof post>): Promise<Json> {
  return (await (await post(...args)).json()) as Json;
}

/** Frames until the server closes, or until `count`. Leaving early closes the connection. */
export async function read(response: Response, count = Number.POSITIVE_INFINITY): Promise<Frame[]> {
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const frames: Frame[] = [];
  for await (const { data, id } of decodeSse(response.body!)) {
    frames.push({ id, data: JSON.parse(data), atMs: performance.now() });
    if (frames.length === count) break;
  }
  return frames;
}

export async function stream(...args: Parameters<typeof post>): Promise<Frame[]> {
  return read(await post(...args));
}

export const states = (frames: Frame[]): string[] => frames.flatMap(({ data }) => (data.status ? [data.status.state] : []));

/** Artifacts as a client of this dialect folds them: only by index. */
export function fold(frames: Frame[]): Map<number, { text: string; closed: boolean }> {
  const folded = new Map<number, { text: string; closed: boolean }>();
  for (const { artifact } of frames.map(frame => frame.data)) {
    if (artifact === undefined) continue;
    const known = folded.get(artifact.index);
    assert.notEqual(known?.closed, true, 'S4-19 nothing follows lastChunk');
    assert.equal(artifact.append && known === undefined, false, 'append without an artifact to append to');
    const text = artifact.parts.map((part: Json) => part.text ?? JSON.stringify(part.data)).join('');
    folded.set(artifact.index, { text: artifact.append ? known!.text + text : text, closed: artifact.lastChunk });
  }
  return folded;
}

import { decodeSse, type JsonObject, type SseEvent } from '@hopline/a2a';
import type { Rig } from './http-server.test-kit.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, and fails where it is not there.
type Any = any;
export type RestAnswer = { status: number; type: string | null; headers: Headers; body: Any };
export type RestRequest = { headers?: Record<string, string>; body?: unknown; raw?: string | Uint8Array };

/** One request of the HTTP+JSON binding: `GET /tasks`. */
export async function rest(rig: Pick<Rig, 'url'>, line: string, request: RestRequest = {}): Promise<RestAnswer> {
  const response = await restResponse(rig, line, request);
  const text = await response.text();
  const { status, headers } = response;
  return { status, type: headers.get('content-type'), headers, body: text === '' ? undefined : JSON.parse(text) };
}

export async function restResponse(rig: Pick<Rig, 'url'>, line: string, request: RestRequest = {}): Promise<Response> {
  const [method = '', path = ''] = line.split(' ');
  const { headers = {}, body, raw } = request;
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  return fetch(`${rig.url}${path}`, {
    method,
    headers: { 'a2a-version': '1.0', ...(content !== undefined && { 'content-type': 'application/a2a+json' }), ...headers },
    ...(content !== undefined && { body: content }),
  });
}

export type RestFrame = SseEvent & { json: JsonObject };

/** Reads `count` frames of a stream, or all of them. */
export async function restFrames(response: Response, count = Number.POSITIVE_INFINITY): Promise<RestFrame[]> {
  const frames: RestFrame[] = [];
  for await (const event of decodeSse(response.body as AsyncIterable<Uint8Array>)) {
    frames.push({ ...event, json: JSON.parse(event.data) as JsonObject });
    if (frames.length >= count) break;
  }
  return frames;
}

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { DIALECTS, type DialectName, decodeSse, type Fold, foldEvents, type StreamResponse } from '@hopline/a2a';

/** One received frame of a stream. */
export type Frame = { id: string; rpcId: unknown; event: StreamResponse; result: Record<string, unknown>; atMs: number };

export type StreamRequest = {
  dialect?: DialectName;
  method?: string;
  params?: Record<string, unknown>;
  text?: string;
  rpcId?: string | number;
  lastEventId?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

/** Params of a message with one text part, in the 0.3 form. */
export function messageParams(text: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { message: { kind: 'message', role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text }], ...more } };
}

export async function rpc(url: string, request: StreamRequest): Promise<Response> {
  const { dialect = '0.3', method = 'message/stream', rpcId = 'req-1', lastEventId, signal } = request;
  const headers: Record<string, string> = { 'content-type': 'application/json', ...request.headers };
  if (dialect !== '0.3') headers['a2a-version'] = dialect;
  if (lastEventId !== undefined) headers['last-event-id'] = lastEventId;
  const params = request.params ?? messageParams(request.text ?? 'hello');
  const body = JSON.stringify({ jsonrpc: '2.0', id: rpcId, method, params });
  return fetch(url, { method: 'POST', headers, body, ...(signal && { signal }) });
}

/** Frames of a stream until the server ends it. Leaving the loop early closes the connection. */
export async function* frames(url: string, request: StreamRequest): AsyncGenerator<Frame> {
  const cut = new AbortController();
  const signal = request.signal === undefined ? cut.signal : AbortSignal.any([cut.signal, request.signal]);
  const response = await rpc(url, { ...request, signal });
  if (!response.ok || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
    throw new Error(`no stream: ${response.status} ${await response.text()}`);
  }
  const codec = DIALECTS[request.dialect ?? '0.3'];
  try {
    for await (const sse of decodeSse(response.body!)) {
      if (sse.event !== undefined && sse.event !== 'message') continue;
      const { id: rpcId, result, error } = JSON.parse(sse.data);
      if (error !== undefined) throw new Error(`error on the stream: ${JSON.stringify(error)}`);
      const decoded = codec.decodeEvent(result);
      if (!('event' in decoded)) throw new Error(`not an event: ${decoded.unknown}`);
      yield { id: sse.id ?? '', rpcId, event: decoded.event, result, atMs: performance.now() };
    }
  } finally {
    cut.abort();
  }
}

export async function collect(url: string, request: StreamRequest): Promise<Frame[]> {
  const all: Frame[] = [];
  for await (const frame of frames(url, request)) all.push(frame);
  return all;
}

/** The task that the frames of a stream show together. */
export function foldOf(list: readonly Frame[]): Fold {
  const fold = foldEvents(list.map(({ event }) => event));
  assert.deepEqual(fold.violations, []);
  return fold;
}

/**
 * Text that the frames add to the artifacts with one name, in the order of their first chunks. Text in a task at the head of the stream is
 * not new.
 */
export function textOf(list: readonly Frame[], name: string): string {
  const updates = list.map(({ event }) => event).filter(event => 'artifactUpdate' in event);
  return foldEvents(updates).textOf(name);
}

/** `task`, `status:working`, `artifact:streaming_result+`, …: the kind of a frame. */
export function shapeOf({ event }: Frame): string {
  if ('task' in event) return 'task';
  if ('statusUpdate' in event) return `status:${event.statusUpdate.status.state.replace('TASK_STATE_', '').toLowerCase()}`;
  if ('message' in event) return 'message';
  const { artifact, append } = event.artifactUpdate;
  return `artifact:${artifact.name}${append ? '+' : ''}`;
}

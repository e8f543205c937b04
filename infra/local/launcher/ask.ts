import { randomUUID } from 'node:crypto';
import { LaunchError } from './launch-error.ts';
import type { Screen } from './screen.ts';
import { readSseFrames } from './sse-frames.ts';
import { type StreamEvent, StreamPrinter } from './stream-printer.ts';

/** The demo answer takes about ten seconds. */
const ANSWER_MS_MAX = 120_000;
/** Ids of frames kept for the resume command; a longer stream offers one of the first. */
const FRAME_IDS_MAX = 10_000;

export type Answer = { taskId: string | null; frameIds: string[]; frames: number; firstTextMs: number | null; totalMs: number };

/** Asks through the public door in the 0.3 dialect and prints the stream as it comes. Rejects with a LaunchError when there is no whole answer. */
export async function ask(url: string, text: string, screen: Screen, signal: AbortSignal): Promise<Answer> {
  const start = performance.now();
  const printer = new StreamPrinter(screen);
  const answer: Answer = { taskId: null, frameIds: [], frames: 0, firstTextMs: null, totalMs: 0 };
  const body = await open(url, text, AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS_MAX)]));
  for await (const { id, data } of readSseFrames(body)) {
    const event = resultOf(data);
    answer.frames += 1;
    if (id !== null && answer.frameIds.length < FRAME_IDS_MAX) answer.frameIds.push(id);
    if (event.kind === 'artifact-update') answer.firstTextMs ??= performance.now() - start;
    printer.print(event);
  }
  answer.taskId = printer.taskId;
  answer.totalMs = performance.now() - start;
  if (!printer.ended) throw new LaunchError('The stream ended without a final state; the logs of the services say more.');
  return answer;
}

/** The request the demo sends, also shown to the reader. */
export function streamRequest(id: number | string, messageId: string, text: string): string {
  const message = { kind: 'message', role: 'user', messageId, parts: [{ kind: 'text', text }] };
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'message/stream', params: { message } });
}

async function open(url: string, text: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
  const response = await fetch(url, { method: 'POST', headers, body: streamRequest('demo', randomUUID(), text), signal });
  const type = response.headers.get('content-type') ?? '';
  if (response.ok && type.startsWith('text/event-stream') && response.body) return response.body;
  throw new LaunchError(`The question was answered with HTTP ${response.status}: ${(await response.text()).slice(0, 300)}`);
}

function resultOf(data: string): StreamEvent {
  const { result, error } = JSON.parse(data);
  if (error) throw new LaunchError(`The question was answered with error ${error.code}: ${String(error.message).slice(0, 300)}`);
  return result;
}

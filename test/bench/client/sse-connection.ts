import { Agent, type ClientRequest, request } from 'node:http';
import { monotonicMs } from '../measure/clock.ts';

const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });

/** `onOpen`: called when the server begins its answer. */
export type SseRequest = { url: string; body?: unknown; lastEventId?: string; onOpen?: () => void };

/** A minimal event stream reader, the same for each server, so that the server dominates the measurement. */
export class SseConnection {
  /** Resolves when the server ended the stream or the client closed it; rejects when it broke. */
  readonly ended: Promise<void>;
  readonly #request: ClientRequest;
  #rest = '';
  #left = false;

  /** `onFrame` gets each frame without its blank line, and the arrival time of its last byte. */
  constructor({ url, body, lastEventId, onOpen }: SseRequest, onFrame: (frame: string, atMs: number) => void) {
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json', 'a2a-version': '1.0' };
    const resumed = lastEventId === undefined ? headers : { ...headers, 'last-event-id': lastEventId };
    this.#request = request(url, { agent, headers: resumed, method: body === undefined ? 'GET' : 'POST' });
    this.ended = new Promise((resolve, reject) => {
      const broken = (error: Error) => (this.#left ? resolve() : reject(error));
      this.#request.on('error', broken);
      this.#request.on('response', response => {
        if (!response.headers['content-type']?.startsWith('text/event-stream'))
          broken(new Error(`${url}: no stream, ${response.statusCode}`));
        else onOpen?.();
        response.setEncoding('utf8');
        response.on('error', broken);
        response.on('end', resolve);
        response.on('data', (text: string) => this.#take(text, monotonicMs(), onFrame));
      });
    });
    this.#request.end(body === undefined ? undefined : JSON.stringify(body));
  }

  leave(): void {
    this.#left = true;
    this.#request.destroy();
  }

  #take(text: string, atMs: number, onFrame: (frame: string, atMs: number) => void): void {
    const all = this.#rest + text;
    let from = 0;
    for (let to = all.indexOf('\n\n'); to >= 0; to = all.indexOf('\n\n', from)) {
      onFrame(all.slice(from, to), atMs);
      from = to + 2;
    }
    this.#rest = all.slice(from);
  }
}

/** JSON of a frame's data; undefined for a comment. A2A frames have one data line. */
export function dataOf(frame: string): string | undefined {
  const at = frame.startsWith('data: ') ? 0 : frame.indexOf('\ndata: ') + 1;
  if (at === 0 && !frame.startsWith('data: ')) return undefined;
  const end = frame.indexOf('\n', at);
  return frame.slice(at + 'data: '.length, end < 0 ? undefined : end);
}

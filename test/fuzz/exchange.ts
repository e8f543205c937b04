import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { ANSWER_MS_MAX } from './fuzz-settings.ts';

/** One request as raw bytes. Nothing is escaped, completed or validated, except what HTTP/1.1 itself cannot express. */
export type Sent = { method: string; path: string; headers?: Record<string, string>; body?: Uint8Array | string | undefined };

export type Received = {
  status: number;
  headers: IncomingHttpHeaders;
  /** For a stream, the text until its end or until it is silent. */
  text: string;
  isStream: boolean;
  ms: number;
};

/** A stream is closed after this silence. Its task waits for input, or the stream has reached its cursor. */
const QUIET_MS = 50;
const SILENT_MS = 300;

export class Exchange {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4 });

  close(): void {
    this.#agent.destroy();
  }

  /** Rejects on a broken connection or without a response in time; both count as faults of the server. */
  send(base: string, { method, path, headers = {}, body }: Sent): Promise<Received> {
    const { hostname, port } = new URL(base);
    const startedAt = performance.now();
    const content = body === undefined ? undefined : Buffer.from(body as Uint8Array);
    const { promise, resolve, reject } = Promise.withResolvers<Received>();
    const sent = httpRequest(
      {
        hostname,
        port,
        method,
        path,
        agent: this.#agent,
        headers: { ...headers, ...(content !== undefined && { 'content-length': content.length }) },
      },
      response => {
        let text = '';
        let quiet: NodeJS.Timeout | undefined;
        const isStream = response.headers['content-type']?.startsWith('text/event-stream') === true;
        const done = () => {
          clearTimeout(late);
          clearTimeout(quiet);
          response.destroy();
          const { statusCode: status = 0, headers } = response;
          resolve({ status, headers, text, isStream, ms: performance.now() - startedAt });
        };
        const wait = () => {
          clearTimeout(quiet);
          if (isStream) quiet = setTimeout(done, text.includes('data:') ? QUIET_MS : SILENT_MS);
        };
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
          wait();
        });
        response.on('end', () => {
          clearTimeout(late);
          clearTimeout(quiet);
          const { statusCode: status = 0, headers } = response;
          resolve({ status, headers, text, isStream, ms: performance.now() - startedAt });
        });
        response.on('error', reject);
      },
    );
    const late = setTimeout(() => sent.destroy(new Error(`${method} ${path}: no answer in ${ANSWER_MS_MAX} ms`)), ANSWER_MS_MAX);
    sent.on('error', error => {
      clearTimeout(late);
      reject(error);
    });
    sent.end(content);
    return promise;
  }
}

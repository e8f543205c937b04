import { connect } from 'node:net';

/** A connection is destroyed after this time. */
const ANSWER_MS_MAX = 20_000;

/** `statuses`: the statuses of all responses on the connection. */
export type RawAnswer = { status: number; statuses: number[]; head: string; body: string };

/** A silent connection is half closed after this time. Requests behind another one are answered long before. */
const QUIET_MS = 500;

/** Sends the bytes on a new connection, and reads until the server closes it, which happens at once with `connection: close` or an error. */
export function exchangeRaw(url: string, bytes: string): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>();
  const socket = connect({ host: hostname, port: Number(port) });
  const late = setTimeout(() => socket.destroy(new Error('the server did not close the connection')), ANSWER_MS_MAX);
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
    quiet?.refresh();
  });
  let quiet: NodeJS.Timeout | undefined;
  // A busy machine may take longer than QUIET_MS for the connection itself.
  socket.once('connect', () => {
    socket.write(Buffer.from(bytes, 'latin1'));
    quiet = setTimeout(() => socket.end(), QUIET_MS);
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    // A server need not read the rest of a refused request.
    if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
  });
  socket.once('close', () => {
    clearTimeout(late);
    clearTimeout(quiet);
    const [head = '', ...rest] = text.split('\r\n\r\n');
    // A response has no line feed after its body.
    const statuses = [...text.matchAll(/HTTP\/1\.\d (\d{3}) /g)].map(([, status]) => Number(status));
    resolve({ status: statuses[0] ?? 0, statuses, head, body: rest.join('\r\n\r\n') });
  });
  return promise;
}

export type RawRequest = {
  line: string;
  /** Several values repeat the header. */
  headers?: Readonly<Record<string, string | readonly string[]>>;
  body?: string;
};

/** Sends one request with exactly these headers. */
export function requestText({ line, headers = {}, body = '' }: RawRequest): string {
  const fields = Object.entries(headers).flatMap(([name, values]) => [values].flat().map(value => `${name}: ${value}\r\n`));
  const length = body === '' ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`;
  return `${line} HTTP/1.1\r\n${fields.join('')}${length}connection: close\r\n\r\n${body}`;
}

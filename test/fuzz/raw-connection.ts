import { connect } from 'node:net';
import { ANSWER_MS_MAX } from './fuzz-settings.ts';

/** Silence that ends an exchange, in milliseconds, because a server that waits for the rest of a request sends nothing. */
const QUIET_MS = 40;

/** Sends bytes on a new connection; returns all received text until the server closes it or is silent. */
export function sendRaw(base: string, bytes: Uint8Array): Promise<string> {
  const { hostname, port } = new URL(base);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ host: hostname, port: Number(port) });
  let text = '';
  let quiet = setTimeout(() => {}, 0);
  const late = setTimeout(() => socket.destroy(new Error('the connection got no response and was not closed')), ANSWER_MS_MAX);
  const wait = () => {
    clearTimeout(quiet);
    quiet = setTimeout(() => socket.destroy(), QUIET_MS);
  };
  socket.setEncoding('latin1');
  socket.on('connect', () => {
    socket.write(bytes);
    wait();
  });
  socket.on('data', (chunk: string) => {
    text += chunk;
    wait();
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    // A server need not read the rest of a rejected request.
    if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
  });
  socket.on('close', () => {
    clearTimeout(late);
    clearTimeout(quiet);
    resolve(text);
  });
  return promise;
}

import { connect } from 'node:net';
import { ANSWER_MS_MAX } from './fuzz-settings.ts';

/** Nothing came for so long after the last byte; milliseconds. A server that waits for the rest of a request says nothing. */
const QUIET_MS = 40;

/** Bytes on a connection of their own, and everything that comes back until the server closes it, or has nothing to say. */
export function sendRaw(base: string, bytes: Uint8Array): Promise<string> {
  const { hostname, port } = new URL(base);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ host: hostname, port: Number(port) });
  let text = '';
  let quiet = setTimeout(() => {}, 0);
  const late = setTimeout(() => socket.destroy(new Error('the connection neither answered nor ended')), ANSWER_MS_MAX);
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
    // A server that has refused a request need not read the rest of it.
    if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
  });
  socket.on('close', () => {
    clearTimeout(late);
    clearTimeout(quiet);
    resolve(text);
  });
  return promise;
}

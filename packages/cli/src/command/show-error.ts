import type { A2AError } from '@hopline/a2a';
import { commandLineFor, type LocalCommand } from '@hopline/local-cluster';
import type { Output } from '@hopline/terminal';

const HOW_TO_AUTHENTICATE =
  'The server requires authentication: set HOPLINE_TOKEN to a bearer token or HOPLINE_API_KEY to an API key.';
const NOT_THE_CONSOLE =
  'Is --url the address for A2A clients? `npm start` prints it after "Hopline is up"; the console has another one.';

/** Prints an error of the server or the network, and what to do about it. */
export function showError(error: A2AError, { output, url, own }: { output: Output; url: string; own: LocalCommand }): void {
  output.warn(`hopline: ${error.message}`);
  if (error.code === 'UNAUTHENTICATED') output.warn(HOW_TO_AUTHENTICATE);
  if (error.code === 'TASK_NOT_FOUND') output.warn(`Your tasks: ${commandLineFor(own, url)('tasks')}`);
  if (error.code === 'METHOD_NOT_FOUND') output.warn(NOT_THE_CONSOLE);
  if (error.code !== 'UNAVAILABLE' || !error.message.includes('cannot be reached')) return;
  const isLocal = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(url).hostname);
  if (isLocal && own.start !== undefined) output.warn(`Start a cluster with: ${own.start}`);
  else output.warn('Is the server running? --url or HOPLINE_URL names another one.');
}

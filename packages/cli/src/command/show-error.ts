import type { A2AError } from '@hopline/a2a';
import { commandLineFor, EnvironmentError, runningCluster } from '@hopline/local-cluster';
import type { CommandContext } from './command.ts';

const HOW_TO_AUTHENTICATE =
  'The server requires authentication: set HOPLINE_TOKEN to a bearer token or HOPLINE_API_KEY to an API key.';
const NOT_THE_CONSOLE =
  'Is --url the address for A2A clients? `npm start` prints it after "Hopline is up"; the console has another one.';

type Shown = Pick<CommandContext, 'output' | 'url' | 'own' | 'environment'>;

/** Prints an error of the server or the network, and what to do about it. */
export function showError(error: A2AError, { output, url, own, environment }: Shown): void {
  output.warn(`hopline: ${error.message}`);
  if (error.code === 'UNAUTHENTICATED') output.warn(HOW_TO_AUTHENTICATE);
  if (error.code === 'TASK_NOT_FOUND') output.warn(`Your tasks: ${commandLineFor(own, url)('tasks')}`);
  if (error.code === 'METHOD_NOT_FOUND') output.warn(NOT_THE_CONSOLE);
  if (error.code !== 'UNAVAILABLE' || !error.message.includes('cannot be reached')) return;
  const isLocal = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(url).hostname);
  const running = isLocal ? localUrl(environment) : undefined;
  if (running !== undefined && running !== url) output.warn(`The local cluster has another address: set HOPLINE_URL=${running}`);
  else if (isLocal && own.start !== undefined) output.warn(`Start a cluster with: ${own.start}`);
  else output.warn('Is the server running? --url or HOPLINE_URL names another one.');
}

/** The address of the cluster that runs on this machine; undefined without one. */
function localUrl(environment: CommandContext['environment']): string | undefined {
  try {
    return runningCluster(environment).url || undefined;
  } catch (error) {
    if (error instanceof EnvironmentError) return undefined;
    throw error;
  }
}

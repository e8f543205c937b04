import { serveHosts } from '../host-listener.ts';

/**
 * The container of an agent's code: waits for its sub-agent at the Unix socket that the argument names, and starts a host for it. The environment
 * of the container is that of the code.
 */
const [, , path] = process.argv;
if (path === undefined) throw new Error('usage: code SOCKET');
const listener = await serveHosts(path, {
  env: process.env,
  nodeOptions: process.execArgv,
  stdout: process.stdout,
  stderr: process.stderr,
});
// The sub-agent gets the same signal, and drains its turns first.
process.on('SIGTERM', () => void listener.close().then(() => process.exit(0)));

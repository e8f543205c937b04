import { listenForServers } from '@hopline/agent-mcp/remote-server';
import { mcpSocketOf, serveHosts } from '../host-listener.ts';

/**
 * The container of an agent's code: waits for its sub-agent at the Unix socket that the first argument names, and starts a host for it. At
 * a second socket next to it, it starts MCP servers. The environment of the container is that of the code. The other arguments name the
 * variables that it must have.
 */
const [, , path, ...required] = process.argv;
/** The exit code that all services use for a wrong configuration, because starting again does not help. */
const EXIT_CONFIG = 78;

if (path === undefined) throw new Error('usage: code SOCKET [VARIABLE…]');
const missing = required.filter(name => process.env[name] === undefined);
if (missing.length > 0) {
  process.stderr.write(`hopline code: the entry of the agent names variables that are not set: ${missing.join(', ')}\n`);
  process.exit(EXIT_CONFIG);
}
const listener = await serveHosts(path, {
  env: process.env,
  nodeOptions: process.execArgv,
  stdout: process.stdout,
  stderr: process.stderr,
});
const servers = await listenForServers(mcpSocketOf(path), {
  environment: process.env,
  onFault: sentence => process.stderr.write(`hopline code: ${sentence}\n`),
});
// The sub-agent drains its turns first, and its end is that of the host.
process.on('SIGTERM', () => void Promise.all([listener.close(), servers.close()]).then(() => process.exit(0)));

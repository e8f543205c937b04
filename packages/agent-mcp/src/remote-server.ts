import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectAt, listenAt } from './container-socket.ts';
import { type ServerCommand, type ServerProcess, STOP_MS, startServer } from './server-process.ts';

/**
 * Servers by command that run in another container (ADR 166). A connection to the container's Unix socket is one server: the first line
 * is its command as JSON, and all further bytes are its standard input and output. It ends with its connection.
 */

/** Bytes of the line with the command. */
export const COMMAND_BYTES_MAX = 4 * 1024 * 1024;
/** Servers of one container that run at the same time. */
export const CONNECTED_SERVERS_MAX = 64;
/** How long a client waits for a container that starts again. */
const CONNECT_MS_MAX = 10_000;

/** Starts a server in the container that listens at `socket`. Rejects with one sentence when nothing listens there. */
export async function startRemoteServer(socket: string, server: Omit<ServerCommand, 'user'>): Promise<ServerProcess> {
  const connection = await connectAt(socket, { msMax: CONNECT_MS_MAX });
  const ended = nextOf(connection, 'close');
  connection.on('error', () => {});
  connection.write(`${JSON.stringify(server)}\n`);
  const stop = async () => {
    connection.end();
    // The other side kills a server that does not end, and then closes the connection.
    await Promise.race([ended, sleep(3 * STOP_MS, undefined, { ref: false })]);
    connection.destroy();
  };
  return { input: connection, output: connection, ended, stop };
}

export type ServerListener = {
  /** Takes no further connection, and resolves when all servers have ended. */
  close(): Promise<void>;
};

/** The variables that the SDK of MCP lets a server inherit. */
const INHERITED = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'];

export type ServerListenerOptions = {
  /** The variables of the container, of which servers inherit a part. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Gets one sentence about a server that could not start. */
  onFault: (sentence: string) => void;
};

/** Starts servers for those who connect to the socket at `path`. */
export async function listenForServers(path: string, { environment, onFault }: ServerListenerOptions): Promise<ServerListener> {
  const inherited = Object.fromEntries(INHERITED.map(name => [name, environment[name]]));
  // The standard output of a server stays open when its input has ended.
  const listener = createServer({ allowHalfOpen: true }, connection => {
    connection.on('error', () => {});
    serve(connection, inherited).catch((error: Error) => {
      onFault(`an MCP server could not start: ${error.message}`);
      connection.destroy();
    });
  });
  listener.maxConnections = CONNECTED_SERVERS_MAX;
  await listenAt(path, listener);
  return { close: () => new Promise(closed => listener.close(() => closed())) };
}

async function serve(connection: Socket, inherited: ServerListenerOptions['environment']): Promise<void> {
  const gone = Promise.race([nextOf(connection, 'end'), nextOf(connection, 'close')]);
  const { command, args, env, cwd } = await readCommand(connection);
  const asked = { command, ...(args && { args }), ...(env && { env }), ...(cwd !== undefined && { cwd }) };
  const server = await startServer(asked, inherited);
  connection.pipe(server.input);
  server.output.pipe(connection);
  await Promise.race([server.ended, gone]);
  await server.stop();
  connection.end();
}

/** Reads the first line, and leaves what follows it in the stream. */
async function readCommand(connection: Socket): Promise<ServerCommand> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of connection.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    const end = chunk.indexOf('\n');
    chunks.push(end < 0 ? chunk : chunk.subarray(0, end));
    bytes += chunks.at(-1)!.length;
    if (bytes > COMMAND_BYTES_MAX) throw new Error(`its command has more than ${COMMAND_BYTES_MAX} bytes`);
    if (end < 0) continue;
    if (end + 1 < chunk.length) connection.unshift(chunk.subarray(end + 1));
    return commandOf(Buffer.concat(chunks).toString('utf8'));
  }
  throw new Error('its command is not complete');
}

/** Unlike `once` of node:events, it does not reject when the connection breaks. */
function nextOf(connection: Socket, event: 'end' | 'close'): Promise<void> {
  return new Promise(resolve => connection.once(event, () => resolve()));
}

function commandOf(line: string): ServerCommand {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new Error('its command is not JSON');
  }
  const command = value as ServerCommand | null;
  if (typeof command?.command !== 'string') throw new Error('its command has no program');
  return command;
}

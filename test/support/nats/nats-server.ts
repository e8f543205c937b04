import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort } from '@hopline/local-cluster';
import { openJetStreamLog } from '@hopline/log-jetstream';

/** A real nats-server for one test file: 127.0.0.1, a free port, JetStream in its own directory. */
export type NatsServer = {
  url: string;
  port: number;
  /** Directory of the store. */
  dir: string;
  /** SIGTERM; removes a temporary directory. */
  stop(): Promise<void>;
  /** SIGKILL. The store remains for `restart`. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open, and nothing is answered until `resume`. */
  pause(): void;
  resume(): void;
  /** Stops the server if it runs, and starts it on the same port and directory. */
  restart(): Promise<void>;
  /** SIGUSR2: lame duck mode, as in a rolling update on Kubernetes. The store remains for `restart`. */
  lameDuck(): Promise<void>;
  /** Replaces the additional lines of the configuration, has the running server read it (SIGHUP), and resolves when it is in effect. */
  reload(config: string): Promise<void>;
};

export type NatsServerOptions = {
  /** Directory of the store; default a temporary directory, removed at the end. */
  dir?: string;
  port?: number;
  /** Additional lines of the server's configuration file. */
  config?: string;
  /** When the server syncs its writes, e.g. `always`. Default: that of nats-server. */
  syncInterval?: string | undefined;
  /** Starts the server without `-js`, as an operator might. */
  withoutJetStream?: boolean;
};

const MAX_PAYLOAD_BYTES = 8 * 1024 * 1024;
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;

const running = new Set<ChildProcess>();
const ownDirs = new Set<string>();
process.once('exit', cleanUp);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    cleanUp();
    process.exit(1);
  });
}

export async function startNats(options: NatsServerOptions = {}): Promise<NatsServer> {
  const binary = findBinary();
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'hopline-nats-'));
  if (!options.dir) ownDirs.add(dir);
  const port = options.port ?? (await freePort());
  const config = join(dir, 'nats.conf');
  const sync = options.syncInterval === undefined ? '' : `, sync_interval: ${options.syncInterval}`;
  const writeConfig = (more: string) =>
    writeFileSync(
      config,
      `listen: "127.0.0.1:${port}"
max_payload: ${MAX_PAYLOAD_BYTES}
${options.withoutJetStream ? '' : `jetstream { store_dir: ${JSON.stringify(dir)}, max_file_store: 32GB${sync} }`}
${more}
`,
    );
  writeConfig(options.config ?? '');
  let child = await start(binary, config, port);
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    dir,
    kill: () => end(child, 'SIGKILL'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    lameDuck: () => end(child, 'SIGUSR2'),
    async restart() {
      await end(child, 'SIGTERM');
      child = await start(binary, config, port);
    },
    reload(more) {
      writeConfig(more);
      return reloadOf(child);
    },
    async stop() {
      await end(child, 'SIGTERM');
      if (!options.dir) removeDir(dir);
    },
  };
}

/** Creates the streams, as a relay would, for a service that is started without one. */
export async function createStreams(servers: string): Promise<void> {
  await (await openJetStreamLog({ servers, name: 'streams' })).close();
}

/** A cluster of real servers by name. */
export type NatsCluster = {
  servers: ReadonlyMap<string, NatsServer>;
  /** Name of the server that answers requests to create streams and consumers. */
  metaLeader(): Promise<string>;
  /** Address of the monitoring port of each server, by name. */
  monitors: ReadonlyMap<string, string>;
  stop(): Promise<void>;
};

/**
 * The servers do not advertise each other unless `isAdvertised`, so that a client behind a proxy stays behind it. `dirs`: the directory of the store of
 * each; default temporary ones.
 */
export async function startNatsCluster(
  names: readonly string[],
  {
    syncInterval,
    dirs = [],
    isAdvertised = false,
    config = '',
  }: Pick<NatsServerOptions, 'syncInterval' | 'config'> & { dirs?: readonly string[]; isAdvertised?: boolean } = {},
): Promise<NatsCluster> {
  const ports = await Promise.all(names.map(async () => ({ route: await freePort(), monitor: await freePort() })));
  const routes = ports.map(({ route }) => `"nats-route://127.0.0.1:${route}"`).join(', ');
  const started = names.map((name, index) => {
    const { route, monitor } = ports[index]!;
    const cluster = `cluster { name: "test", listen: "127.0.0.1:${route}", routes: [${routes}], no_advertise: ${!isAdvertised} }`;
    const dir = dirs[index];
    return startNats({
      syncInterval,
      ...(dir !== undefined && { dir }),
      config: `server_name: "${name}"\nhttp: "127.0.0.1:${monitor}"\n${cluster}\n${config}`,
    });
  });
  const servers = new Map((await Promise.all(started)).map((server, index) => [names[index]!, server]));
  return {
    servers,
    monitors: new Map(names.map((name, index) => [name, `http://127.0.0.1:${ports[index]!.monitor}`])),
    async metaLeader() {
      const jsz = await (await fetch(`http://127.0.0.1:${ports[0]!.monitor}/jsz`)).json();
      return (jsz as { meta_cluster: { leader: string } }).meta_cluster.leader;
    },
    async stop() {
      const all = [...servers.values()];
      await Promise.all(all.map(server => server.kill()));
      await Promise.all(all.map(server => server.stop()));
    },
  };
}

/** The server in HOPLINE_NATS_SERVER, else the first `nats-server` in PATH. */
export function findBinary(): string {
  const named = process.env.HOPLINE_NATS_SERVER;
  const places = named ? [named] : (process.env.PATH ?? '').split(delimiter).map(path => join(path, 'nats-server'));
  const found = places.find(isExecutable);
  if (!found) throw new Error('nats-server not found: put it on PATH, or set HOPLINE_NATS_SERVER');
  return found;
}

async function start(binary: string, config: string, port: number): Promise<ChildProcess> {
  const child = spawn(binary, ['-c', config], { stdio: ['ignore', 'ignore', 'pipe'] });
  running.add(child);
  let last = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    last = `${last}${chunk}`.slice(-2_000);
  });
  child.once('exit', () => running.delete(child));
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!(await answers(port))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`nats-server did not start: ${last}`);
    }
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  return child;
}

/** Rejects when the server does not take the new configuration, e.g. because of a syntax error. */
async function reloadOf(child: ChildProcess): Promise<void> {
  const log = child.stderr ?? assert.fail('the log of the server is not read');
  let text = '';
  const reloaded = new Promise<void>((resolve, reject) => {
    const onData = (chunk: Buffer) => {
      text += chunk;
      if (text.includes('Reloaded server configuration')) settle(resolve);
      else if (text.includes('Failed to reload')) settle(() => reject(new Error(`nats-server: ${text}`)));
    };
    const onExit = () => settle(() => reject(new Error(`nats-server ended: ${text}`)));
    const settle = (end: () => void) => {
      log.off('data', onData);
      child.off('exit', onExit);
      end();
    };
    log.on('data', onData);
    child.once('exit', onExit);
  });
  child.kill('SIGHUP');
  await reloaded;
}

/** True when the server sends INFO. */
function answers(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1');
    const done = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('data', () => done(true));
    socket.once('error', () => done(false));
    socket.setTimeout(1_000, () => done(false));
  });
}

async function end(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL' | 'SIGUSR2'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise(resolve => child.once('exit', resolve));
  child.kill(signal);
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(late);
}

function cleanUp(): void {
  for (const child of running) child.kill('SIGKILL');
  for (const dir of ownDirs) removeDir(dir);
}

function removeDir(dir: string): void {
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  ownDirs.delete(dir);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

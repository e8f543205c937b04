import { rmSync } from 'node:fs';
import { freePort } from '@hopline/local-cluster';
import { type AgentsFile, readAgentsFile } from './agents-file.ts';
import { Cluster, waitReady } from './cluster.ts';
import { DEMO_AGENTS } from './demo.ts';
import { checkHomeFormat, createHome, type Home, homePaths } from './home.ts';
import { lockHome } from './home-lock.ts';
import type { Installation } from './installation.ts';
import { KillRequests } from './kill-requests.ts';
import { LaunchError } from './launch-error.ts';
import { boundLog } from './log-file.ts';
import { natsProcess, natsVersion } from './nats-process.ts';
import type { NatsUsers } from './nats-users.ts';
import type { Options } from './options.ts';
import { HOST, isPortFree, requireFreePort, urlHost } from './ports.ts';
import { isNatsReady, isServiceReady } from './readiness.ts';
import { removeRunFile, writeRunFile } from './run-file.ts';
import type { Screen } from './screen.ts';
import { serviceProcesses } from './service-processes.ts';
import { stopStaleCluster } from './stale-cluster.ts';
import type { SupervisedProcess } from './supervised-process.ts';

/** Time limit of the services that a question needs. A cold start on a slow machine takes most of a minute. */
const READY_MS_MAX = 120_000;
/** Time limit of NATS, and of agents. The cluster is up without its agents, which may start later. */
const SOON_READY_MS_MAX = 30_000;
const LOG_CHECK_MS = 2000;
/** The console listens on 8090 when ingress listens on 8000. */
const CONSOLE_PORT_OFFSET = 90;
const PORT_MAX = 65_535;

type LaunchPaths = { installation: Installation; natsServer: string | null };
/** `stop` also ends a start in progress. `kill` kills every process at once, even during a drain. */
export type Signals = { stop: AbortSignal; kill: AbortSignal };
export type LocalCluster = { url: string; home: Home; cluster: Cluster; close(): Promise<void> };

/** Starts the cluster and resolves when it is ready. On a LaunchError no process is left running and the home is released. */
export async function launch(options: Options, paths: LaunchPaths, screen: Screen, signals: Signals): Promise<LocalCluster> {
  const agents = readAgentsFile(options.agentsFile ?? DEMO_AGENTS);
  const home = homePaths(options.home);
  createHome(home);
  const port = options.port === 0 ? await freePort() : options.port;
  const url = `http://${urlHost(options.host)}:${port}/`;
  const unlock = lockHome(home.lockFile, url);
  const run: RunState = { url, nats: '', isUp: false };
  const cluster = createCluster(home, run, screen);
  signals.kill.addEventListener('abort', () => cluster.kill());
  const logs = setInterval(() => boundLogs(cluster, home), LOG_CHECK_MS);
  const close = async () => {
    await cluster.drain(instance => screen.line(`${instance} did not end in time and was killed`));
    clearInterval(logs);
    try {
      removeRunFile(home.runFile);
      rmSync(home.natsUsers, { force: true });
    } finally {
      unlock();
    }
  };
  try {
    checkHomeFormat(home);
    const stale = await stopStaleCluster(home);
    if (stale.length > 0) screen.line(`stopped processes of an earlier start: ${stale.join(', ')}`);
    await requireFreePort(port, options.host);
    const { natsUrl, natsUsers } =
      options.natsUrl === null
        ? await startNats({
            agents,
            agentAccounts: options.agentAccounts,
            cluster,
            home,
            paths,
            run,
            screen,
            signal: signals.stop,
          })
        : await useNats(options.natsUrl, screen);
    run.nats = withoutCredentials(natsUrl);
    const { profile, relays, host } = options;
    // Chosen here, so that it stays the same when ingress restarts.
    const grpcPort = options.grpcPort || (await freePort());
    const consolePort = await consolePortNear(port);
    const { installation } = paths;
    const ports = { ingressPort: port, grpcPort, consolePort };
    const plan = { home, natsUrl, natsUsers, host, installation, ...ports, agents, profile, relays };
    await startServices(cluster, serviceProcesses(plan), signals.stop);
    run.isUp = true;
  } catch (error) {
    await close();
    throw error;
  }
  return { url, home, cluster, close };
}

/** Reuses the console's port, so that links stay valid when the cluster starts again, unless another program has the port. */
async function consolePortNear(ingressPort: number): Promise<number> {
  const port = ingressPort + CONSOLE_PORT_OFFSET;
  return port <= PORT_MAX && (await isPortFree(port)) ? port : freePort();
}

/** `isUp`: false during the start. A wrong setting then ends the start, which reports the fault. */
type RunState = { url: string; nats: string; natsMonitor?: string; isUp: boolean };

function createCluster(home: Home, run: RunState, screen: Screen): Cluster {
  const prefix = process.env.HOPLINE_PREFIX;
  let isWritten = true;
  const write = () => {
    const { url, nats, natsMonitor } = run;
    const processes = cluster.list();
    const more = { ...(natsMonitor && { natsMonitor }), ...(prefix && { prefix }) };
    try {
      writeRunFile(home.runFile, { url, nats, ...more, logs: home.logs, processes });
      isWritten = true;
    } catch (error) {
      // The disk may be full, for example. The processes run without their list.
      const { code } = error as NodeJS.ErrnoException;
      if (isWritten) screen.warning(`run.json cannot be written (${code}): until it can, hopline status shows an older state`);
      isWritten = false;
    }
  };
  const kills = new KillRequests();
  const cluster: Cluster = new Cluster({
    changed: write,
    connected: (_process, send) => send(kills.hello()),
    message: ({ spec }, message, send) =>
      void kills.answer(cluster, spec.instance, message).then(answer => answer && send(answer)),
    restarting: (process, ending, waitMs) => {
      const { instance } = process.spec;
      if (waitMs !== null) screen.notice(`${instance} ended (${ending}); restarting in ${waitMs / 1000} s`);
      else if (run.isUp)
        screen.notice(`${instance} ended and is not restarted, because its settings are invalid: ${process.fault}`);
    },
    authorText: (_process, text) => {
      for (const line of text.trimEnd().split('\n')) screen.warning(line);
    },
    restarted: ({ spec }, pid) => screen.notice(`${spec.instance} restarted as process ${pid}`),
  });
  return cluster;
}

function boundLogs(cluster: Cluster, home: Home): void {
  for (const { instance } of cluster.list()) boundLog(`${home.logs}/${instance}.log`);
}

/** Loaded on demand, because the operator's own NATS server has its own users. */
async function createUsers(
  { agents: { agents }, agentAccounts: setting, home, screen }: StartNats,
  server: string,
): Promise<NatsUsers> {
  const [{ agentAccountsFor, NatsUsers, oldServerNotice }, { layoutSizesOf }] = await Promise.all([
    import('./nats-users.ts'),
    import('@hopline/log-jetstream'),
  ]);
  const names = agents.map(({ name }) => name);
  const later = layoutSizesOf(process.env.HOPLINE_LAYOUTS || '');
  const groups = later.reduce((sum, layout) => sum + layout.groups, Number(process.env.HOPLINE_STREAM_GROUPS || 1));
  const prefix = process.env.HOPLINE_PREFIX || undefined;
  const serverVersion = await natsVersion(server);
  const notice = oldServerNotice(server, { setting, serverVersion });
  if (notice !== undefined) screen.line(notice);
  const agentAccounts = agentAccountsFor(home, { prefix, setting, serverVersion });
  const users = new NatsUsers(names, prefix, { groups, agentAccounts });
  users.writeCommandLogins(home.natsUsers);
  return users;
}

/** `natsUsers`: the users of a server that the launcher starts. */
type Nats = { natsUrl: string; natsUsers: NatsUsers | undefined };

type StartNats = {
  agents: AgentsFile;
  agentAccounts: boolean | null;
  cluster: Cluster;
  home: Home;
  paths: LaunchPaths;
  run: RunState;
  screen: Screen;
  signal: AbortSignal;
};

async function startNats(start: StartNats): Promise<Nats> {
  const { cluster, home, paths, run, signal } = start;
  if (paths.natsServer === null) throw new LaunchError('no nats-server: use `npm start`, or set NATS_URL');
  const natsUsers = await createUsers(start, paths.natsServer);
  const [port, monitor] = [await freePort(), await freePort()];
  run.natsMonitor = `http://${HOST}:${monitor}`;
  const nats = await cluster.run(natsProcess(home, paths.natsServer, { port, monitor }, paths.installation.folder, natsUsers));
  const fault = await unlessAborted(
    waitReady(nats, () => isNatsReady(port), SOON_READY_MS_MAX),
    signal,
  );
  if (fault !== null) throw new LaunchError(fault);
  return { natsUrl: nats.url, natsUsers };
}

/**
 * Checks an existing server before any service connects. Otherwise each service would wait half a minute and then fail with an error of its
 * own.
 */
async function useNats(natsUrl: string, screen: Screen): Promise<Nats> {
  const [{ checkNats, LOG_SETTINGS }, { defineConfig }] = await Promise.all([
    import('@hopline/log-jetstream'),
    import('@hopline/lifecycle'),
  ]);
  try {
    await checkNats(defineConfig(LOG_SETTINGS).load({ ...process.env, NATS_URL: natsUrl }));
  } catch (error) {
    throw new LaunchError(error instanceof Error ? error.message : 'NATS cannot be used');
  }
  screen.line(`Using NATS at ${withoutCredentials(natsUrl)}`);
  return { natsUrl, natsUsers: undefined };
}

/** run.json and the screen must not contain a password. */
function withoutCredentials(urls: string): string {
  return urls.replaceAll(/:\/\/[^/,@]*@/g, '://');
}

async function startServices(cluster: Cluster, specs: Parameters<Cluster['run']>[0][], signal: AbortSignal): Promise<void> {
  const processes = await Promise.all(specs.map(spec => cluster.run(spec)));
  // A wrong setting is permanent, and the other services may be waiting for the service that has it.
  const hasInvalid = () => processes.some(({ isFinal }) => isFinal);
  const wait = (process: SupervisedProcess) =>
    waitReady(
      process,
      () => isServiceReady(process.url),
      process.spec.service === 'sub-agent' ? SOON_READY_MS_MAX : READY_MS_MAX,
      hasInvalid,
    );
  const waits = processes.map(async process => ({ process, fault: await wait(process) }));
  const ended = await unlessAborted(Promise.all(waits), signal);
  // The cluster works without an agent that has exited, and restarts it.
  const isFatal = (process: SupervisedProcess) => (hasInvalid() ? process.isFinal : process.spec.service !== 'sub-agent');
  // The end of another process may have ended the wait for this one, which may have ended itself since.
  const faultOf = (process: SupervisedProcess, fault: string) =>
    process.isFinal && process.fault !== '' ? process.fault : fault;
  const fatal = ended.flatMap(({ process, fault }) => (fault !== null && isFatal(process) ? [faultOf(process, fault)] : []));
  if (fatal.length > 0) throw new LaunchError(withoutRepeats(fatal).join('\nhopline: '));
}

/** Services that share a wrong setting report the same sentence, each under its own name. Only the first report is shown. */
function withoutRepeats(faults: readonly string[]): string[] {
  const bySentence = new Map<string, string>();
  for (const fault of faults) {
    const sentence = fault.replace(/^[\w-]+: /, '');
    if (!bySentence.has(sentence)) bySentence.set(sentence, fault);
  }
  return [...bySentence.values()];
}

/** Rejects at once when the start is interrupted. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const stop = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    const fail = () => reject(new LaunchError('stopped before the cluster was ready'));
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true, signal: stop.signal });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    stop.abort();
  }
}

import { readAgentsFile } from './agents-file.ts';
import { Cluster, waitReady } from './cluster.ts';
import { DEMO_AGENTS } from './demo.ts';
import { checkHomeFormat, createHome, type Home, homePaths } from './home.ts';
import { lockHome } from './home-lock.ts';
import { LaunchError } from './launch-error.ts';
import { boundLog } from './log-file.ts';
import { natsProcess } from './nats-process.ts';
import type { Options } from './options.ts';
import { freePorts, HOST, requireFreePort } from './ports.ts';
import { isNatsReady, isServiceReady } from './readiness.ts';
import { removeRunFile, writeRunFile } from './run-file.ts';
import type { Screen } from './screen.ts';
import { serviceProcesses } from './service-processes.ts';
import { stopStaleCluster } from './stale-cluster.ts';
import type { SupervisedProcess } from './supervised-process.ts';

const READY_MS_MAX = 30_000;
const LOG_CHECK_MS = 2000;

export type Place = { root: string; servicesFolder: string; natsServer: string | null };
/** `stop` ends a start that is under way; `kill` ends every process at once, also one that drains. */
export type Signals = { stop: AbortSignal; kill: AbortSignal };
export type LocalCluster = { url: string; home: Home; cluster: Cluster; close(): Promise<void> };

/** Starts the cluster and resolves when it answers. Rejects with a LaunchError, with nothing left running and the home released. */
export async function launch(options: Options, place: Place, screen: Screen, signals: Signals): Promise<LocalCluster> {
  const agents = readAgentsFile(options.agentsFile ?? DEMO_AGENTS);
  const home = homePaths(options.home);
  createHome(home);
  const port = options.port === 0 ? await freePort() : options.port;
  const url = `http://${HOST}:${port}/`;
  const unlock = lockHome(home.lockFile, url);
  const cluster = createCluster(home, screen);
  signals.kill.addEventListener('abort', () => cluster.kill());
  const logs = setInterval(() => boundLogs(cluster, home), LOG_CHECK_MS);
  const close = async () => {
    await cluster.drain(instance => screen.line(`${instance} did not end in time and was killed`));
    clearInterval(logs);
    removeRunFile(home.runFile);
    unlock();
  };
  try {
    checkHomeFormat(home);
    const left = await stopStaleCluster(home);
    if (left.length > 0) screen.line(`stopped what an earlier start left behind: ${left.join(', ')}`);
    await requireFreePort(port);
    const natsUrl = options.natsUrl ?? (await startNats(cluster, home, place, signals.stop));
    const { profile, relays } = options;
    // Chosen here and not by ingress, so that it stays the same when ingress is started again.
    const grpcPort = options.grpcPort || (await freePort());
    const { servicesFolder } = place;
    const plan = { home, natsUrl, servicesFolder, ingressPort: port, grpcPort, agents, profile, relays };
    await startServices(cluster, serviceProcesses(plan), screen, signals.stop);
  } catch (error) {
    await close();
    throw error;
  }
  return { url, home, cluster, close };
}

async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

function createCluster(home: Home, screen: Screen): Cluster {
  const cluster: Cluster = new Cluster({
    changed: () => writeRunFile(home.runFile, cluster.running()),
    restarting: ({ spec }, ending, waitMs) =>
      screen.line(
        `${spec.instance} ended (${ending}); ${waitMs === null ? 'its settings are wrong, it is not started again' : `starting it again in ${waitMs / 1000} s`}`,
      ),
    restarted: ({ spec }, pid) => screen.line(`${spec.instance} runs again as process ${pid}`),
  });
  return cluster;
}

function boundLogs(cluster: Cluster, home: Home): void {
  for (const { instance } of cluster.running()) boundLog(`${home.logs}/${instance}.log`);
}

async function startNats(cluster: Cluster, home: Home, place: Place, signal: AbortSignal): Promise<string> {
  if (place.natsServer === null) throw new LaunchError('No nats-server is known here; start with `npm start`, or set NATS_URL.');
  const port = await freePort();
  const nats = await cluster.run(natsProcess(home, place.natsServer, port, place.root));
  const fault = await unlessAborted(
    waitReady(nats, () => isNatsReady(port), READY_MS_MAX),
    signal,
  );
  if (fault !== null) throw new LaunchError(fault);
  return nats.url;
}

async function startServices(
  cluster: Cluster,
  specs: Parameters<Cluster['run']>[0][],
  screen: Screen,
  signal: AbortSignal,
): Promise<void> {
  const processes = await Promise.all(specs.map(spec => cluster.run(spec)));
  const wait = (process: SupervisedProcess) => waitReady(process, () => isServiceReady(process.url), READY_MS_MAX);
  const faults = await unlessAborted(Promise.all(processes.map(wait)), signal);
  for (const [index, fault] of faults.entries()) {
    if (fault === null) continue;
    // The others serve without it, and an agent that is down may come up later: it goes on being started.
    if (processes[index]?.spec.service === 'sub-agent') screen.line(`${fault}; going on without it`);
    else throw new LaunchError(fault);
  }
}

/** A Ctrl-C while something is awaited ends the start at once. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const stop = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    const fail = () => reject(new LaunchError('Stopped before the cluster was ready.'));
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true, signal: stop.signal });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    stop.abort();
  }
}

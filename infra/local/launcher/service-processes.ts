import { join } from 'node:path';
import { isLoopback } from '@hopline/endpoint/loopback';
import { freePort } from '@hopline/local-cluster';
import type { LogUser } from '@hopline/log-jetstream';
import type { AgentsFile, UncheckedEntry } from './agents-file.ts';
import type { Home } from './home.ts';
import type { Installation } from './installation.ts';
import type { NatsUsers } from './nats-users.ts';
import { HOST, isPortFree, urlHost } from './ports.ts';
import { serviceEnvironment } from './process-environment.ts';
import { AUTHOR_FD, type ProcessSpec } from './supervised-process.ts';

type ServicesPlan = {
  home: Home;
  installation: Installation;
  natsUrl: string;
  /** Absent if the environment names an existing NATS server, whose credentials then also come from the environment. */
  natsUsers: NatsUsers | undefined;
  /** Address on which ingress listens. */
  host: string;
  ingressPort: number;
  grpcPort: number;
  consolePort: number;
  profile: string;
  relays: number;
  agents: AgentsFile;
};

/** Shorter than the launcher's own limit, so that a service can still flush its spans and log unfinished work. */
const SERVICE_DRAIN_MS_MAX = 5000;

type Service = {
  service: string;
  instance: string;
  cwd: string;
  env: NodeJS.ProcessEnv;
  port: number | null;
  host: string;
  exchangesMessages?: boolean;
  agent?: { name: string; target: string };
  entry?: UncheckedEntry;
  /** Runs code of the operator's own agent. */
  isLocalCode?: boolean;
};

/** The processes of all services of the cluster. `env`: the settings of the user. */
export function serviceProcesses(plan: ServicesPlan, env: NodeJS.ProcessEnv = process.env): ProcessSpec[] {
  const cwd = plan.installation.folder;
  const one = (service: string, port: number | null = null): Service => ({
    service,
    instance: `${service}-1`,
    cwd,
    env: {},
    port,
    host: HOST,
  });
  const relays = Array.from({ length: plan.relays }, (_, i) => ({ ...one('relay'), instance: `relay-${i + 1}` }));
  // A sub-agent runs in the folder of the agents file, from which relative paths in its entry start, including those in `args`.
  const agents = plan.agents.agents.map(entry => ({
    ...one('sub-agent'),
    instance: `sub-agent-${entry.name}`,
    cwd: plan.agents.folder,
    agent: { name: entry.name, target: targetOf(entry) },
    entry,
    isLocalCode: entry.adapter === 'module' || (entry.adapter === 'langgraph' && entry.module !== undefined),
    env: { HOPLINE_AGENT: JSON.stringify(entry), HOPLINE_AGENTS_DIR: plan.agents.folder },
  }));
  // A key set by the operator takes precedence.
  const hasKey = env.HOPLINE_SECRETS_KEY || env.HOPLINE_SECRETS_KEY_FILE;
  const secrets = hasKey ? {} : { HOPLINE_SECRETS_KEY_FILE: plan.home.secretsKey };
  const consoleUrl = env.HOPLINE_CONSOLE_URL || `http://${HOST}:${plan.consolePort}/`;
  const offers = { HOPLINE_GRPC_PORT: String(plan.grpcPort), HOPLINE_PUSH: 'true', HOPLINE_CONSOLE_URL: consoleUrl, ...secrets };
  const ingress = { ...one('ingress', plan.ingressPort), env: offers, host: plan.host };
  // Always on loopback, regardless of HOPLINE_HOST: clients do not use the console by name.
  const webConsole = {
    ...one('console', plan.consolePort),
    env: {
      HOPLINE_CONSOLE_INGRESS_URL: `http://${urlHost(plan.host)}:${plan.ingressPort}/`,
      HOPLINE_CONSOLE_HOME: plan.home.folder,
      HOPLINE_CONSOLE_AGENTS_FILE: plan.agents.path,
      // On loopback everyone who opens the page is the user of this machine. Elsewhere the operator decides.
      HOPLINE_CONSOLE_WRITES: env.HOPLINE_CONSOLE_WRITES || String(isLoopback(plan.host)),
    },
    exchangesMessages: isForThisUser(plan.host, env),
  };
  const services = [ingress, webConsole, one('supervisor'), ...agents, ...relays, { ...one('notifier'), env: secrets }];
  return services.map(service => serviceProcess(service, plan));
}

/**
 * Whether only the user of this machine can reach the cluster. A host name for a proxy, or authentication, lets in other people, who must
 * not get the channel to the launcher.
 */
function isForThisUser(host: string, env: NodeJS.ProcessEnv): boolean {
  const names = [env.HOPLINE_PUBLIC_URL, env.HOPLINE_CONSOLE_URL].filter(url => url !== undefined && url !== '');
  const hasCallers = env.HOPLINE_AUTH_ISSUER || env.HOPLINE_AUTH_API_KEYS_FILE || env.HOPLINE_TLS_CLIENT_CA_FILE;
  return !hasCallers && isLoopback(host) && names.every(url => isLoopback(URL.parse(url!)?.hostname ?? ''));
}

/** The target of an agent: host and port of its URL, otherwise its command or its file. */
function targetOf({ url, command, path, module }: UncheckedEntry): string {
  if (typeof url === 'string') return URL.canParse(url) ? new URL(url).host : '';
  return [command, path, module].find(target => typeof target === 'string') ?? '';
}

function serviceProcess(
  { service, instance, cwd, env, port: fixedPort, host, agent, entry, isLocalCode = false, exchangesMessages }: Service,
  plan: ServicesPlan,
): ProcessSpec {
  let port = fixedPort;
  return {
    service,
    instance,
    cwd,
    logPath: join(plan.home.logs, `${instance}.log`),
    ...(agent && { agent }),
    writesForAuthor: isLocalCode,
    ...(exchangesMessages && { exchangesMessages }),
    prepare: async () => {
      if (fixedPort === null && (port === null || !(await isPortFree(port)))) port = await freePort();
      const settings = {
        // The console has no access to the log.
        ...(service !== 'console' && {
          NATS_URL: plan.natsUrl,
          ...plan.natsUsers?.loginOf(agent === undefined ? (service as LogUser) : `agent.${agent.name}`),
        }),
        HOPLINE_HOST: host,
        HOPLINE_PORT: String(port),
        HOPLINE_INSTANCE: instance,
        // `hopline logs` reads the files.
        HOPLINE_LOG_FORMAT: 'json',
        HOPLINE_PROFILE: plan.profile,
        HOPLINE_STDIN_LIFELINE: '1',
        ...(isLocalCode && { HOPLINE_AGENT_ERRORS_FD: String(AUTHOR_FD) }),
        // Halves the CPU time of a service's start (0.9 s to 0.43 s), and with it the outage after a kill.
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE || plan.installation.compileCache(plan.home.folder),
        HOPLINE_DRAIN_MS_MAX: process.env.HOPLINE_DRAIN_MS_MAX || String(SERVICE_DRAIN_MS_MAX),
      };
      return {
        command: [process.execPath, plan.installation.programOf(service)],
        env: { ...serviceEnvironment(service, process.env, entry), ...settings, ...env },
        url: `http://${urlHost(host)}:${port}`,
      };
    },
  };
}

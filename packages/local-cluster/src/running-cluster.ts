import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EnvironmentError } from './environment-error.ts';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));

type Environment = Readonly<Record<string, string | undefined>>;

/** One process of the local cluster in `run.json`. `ending`: how it last ended. `agent`: only for a sub-agent. */
export type ListedProcess = {
  service: string;
  instance: string;
  /** Null while the process is not running. */
  pid: number | null;
  url: string;
  restarts: number;
  ending?: string;
  /** `target`: what the agent connects to or runs. */
  agent?: { name: string; target: string };
};

/** Content of `run.json`, which the launcher replaces whenever a process starts or ends. `nats`: without credentials. `prefix`: HOPLINE_PREFIX. */
export type RunFile = {
  url: string;
  nats: string;
  /** Monitoring of NATS over HTTP; absent for a server that the launcher did not start. */
  natsMonitor?: string;
  prefix?: string;
  logs: string;
  processes: ListedProcess[];
};

/**
 * The running local cluster, from the `run.json` that `npm start` keeps in its home: HOPLINE_HOME, else `.hopline` in the current
 * folder or in the checkout that contains this command. Throws EnvironmentError.
 */
export function runningCluster(environment: Environment): RunFile & { home: string } {
  const homes = homesOf(environment);
  for (const home of homes) {
    const found = readRunFile(`${home}/run.json`);
    if (found !== undefined) return { ...found, home };
  }
  throw new EnvironmentError(
    `no local cluster is running (no run.json with a NATS server in ${homes.join(' or ')}): run npm start in a checkout of Hopline, or set HOPLINE_HOME or NATS_URL`,
  );
}

/** Users of the log for commands. `operator` reads it, `agent` may act as any agent, `admin` edits streams with other tools. */
export const COMMAND_USERS = ['operator', 'agent', 'admin'] as const;
type CommandUser = (typeof COMMAND_USERS)[number];
/** File in the home of a local cluster with the logins of COMMAND_USERS at its NATS server. */
export const NATS_USERS_FILE = 'nats-users.json';
export type CommandLogins = Record<CommandUser, { user: string; password: string }>;

export type LogLocation = { NATS_URL: string; HOPLINE_PREFIX?: string } & Partial<Record<Credential, string>>;
const CREDENTIALS = ['NATS_USER', 'NATS_PASSWORD', 'NATS_TOKEN', 'NATS_CREDS', 'NATS_CREDS_FILE'] as const;
type Credential = (typeof CREDENTIALS)[number];

/**
 * Settings for a connection to the cluster's log: those of the environment if NATS_URL is set, otherwise those in `run.json` with the login
 * of `user`. Throws EnvironmentError.
 */
export function logSettingsOf(environment: Environment, user: CommandUser): LogLocation {
  if (environment.NATS_URL) return { NATS_URL: environment.NATS_URL };
  const { nats, prefix, home } = runningCluster(environment);
  const isSet = environment.HOPLINE_PREFIX !== undefined && environment.HOPLINE_PREFIX !== '';
  return { NATS_URL: nats, ...(prefix !== undefined && !isSet && { HOPLINE_PREFIX: prefix }), ...loginOf(home, user) };
}

/** Reads the login of a user. Absent if the NATS server is the operator's own, whose credentials are in the environment. */
function loginOf(home: string, user: CommandUser): Partial<Record<Credential, string>> {
  try {
    const login = (JSON.parse(readFileSync(`${home}/${NATS_USERS_FILE}`, 'utf8')) as CommandLogins)[user];
    const none = Object.fromEntries(CREDENTIALS.map(name => [name, '']));
    return { ...none, NATS_USER: login.user, NATS_PASSWORD: login.password };
  } catch {
    return {};
  }
}

/** Folder with the logs of the local cluster, which remain after it has ended. Throws EnvironmentError. */
export function logsFolder(environment: Environment): string {
  const folders = homesOf(environment).map(home => `${home}/logs`);
  const found = folders.find(existsSync);
  if (found === undefined)
    throw new EnvironmentError(`there are no logs in ${folders.join(' or ')}: run npm start, or set HOPLINE_HOME`);
  return found;
}

function homesOf(environment: Environment): string[] {
  if (environment.HOPLINE_HOME) return [resolve(environment.HOPLINE_HOME)];
  return [...new Set([resolve('.hopline'), resolve(CHECKOUT, '.hopline')])];
}

function readRunFile(path: string): RunFile | undefined {
  try {
    const {
      processes,
      nats,
      natsMonitor,
      prefix,
      url = '',
      logs = '',
    } = JSON.parse(readFileSync(path, 'utf8')) as Partial<RunFile>;
    const address = nats || processes?.find(({ service }) => service === 'nats')?.url;
    return processes === undefined || typeof address !== 'string'
      ? undefined
      : { url, nats: address, ...(natsMonitor && { natsMonitor }), ...(prefix && { prefix }), logs, processes };
  } catch {
    return undefined;
  }
}

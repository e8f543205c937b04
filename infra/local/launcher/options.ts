import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { unknownSettings } from '@hopline/lifecycle';
import { LaunchError } from './launch-error.ts';
import { HOST } from './ports.ts';

const PORT_DEFAULT = 8000;
const PORT_MAX = 65_535;
const RELAYS_MAX = 16;

export type Options = {
  /** Port of ingress; 0 chooses a free one. */
  port: number;
  /** Address on which ingress listens; every other process stays on 127.0.0.1. */
  host: string;
  /** gRPC port of ingress; 0 chooses a free one. */
  grpcPort: number;
  /** Full path. Null: the agents of the demo. */
  agentsFile: string | null;
  runsDemo: boolean;
  profile: string;
  /** Full path of the folder with the state of this cluster. */
  home: string;
  natsUrl: string | null;
  /** Origins of pages that may use the cluster from a browser, added to HOPLINE_CORS_ORIGINS. */
  origins: string[];
  relays: number;
  /** Whether each agent has a NATS account of its own; null leaves it to the log in the home. */
  agentAccounts: boolean | null;
  help: boolean;
};

/** Parses the command line, which overrides the environment. Relative paths are relative to `base`. */
export function parseOptions(argv: string[], env: NodeJS.ProcessEnv, base: string, root: string): Options {
  requireOwnArguments(env);
  requireHttp(env);
  requireKnownSettings(env);
  const { port, agents, origin = [], 'no-demo': noDemo, help } = readArguments(argv);
  const agentsFile = agents ?? (env.HOPLINE_AGENTS || null);
  return {
    port: wholeNumber(
      port === undefined ? 'HOPLINE_PORT' : '--port',
      port ?? (env.HOPLINE_PORT || String(PORT_DEFAULT)),
      0,
      PORT_MAX,
    ),
    host: env.HOPLINE_HOST || HOST,
    grpcPort: wholeNumber('HOPLINE_GRPC_PORT', env.HOPLINE_GRPC_PORT || '0', 0, PORT_MAX),
    agentsFile: agentsFile === null ? null : resolve(base, agentsFile),
    runsDemo: !noDemo,
    profile: env.HOPLINE_PROFILE || 'caipe',
    home: env.HOPLINE_HOME ? resolve(base, env.HOPLINE_HOME) : resolve(root, '.hopline'),
    natsUrl: env.NATS_URL || null,
    origins: origin.map(originOf),
    relays: wholeNumber('HOPLINE_RELAYS', env.HOPLINE_RELAYS || '1', 1, RELAYS_MAX),
    agentAccounts: agentAccountsOf(env),
    help: help === true,
  };
}

/** HOPLINE_CORS_ORIGINS together with the origins of the command line. */
export function corsSetting({ origins }: Pick<Options, 'origins'>, env: NodeJS.ProcessEnv): Record<string, string> {
  if (origins.length === 0 || env.HOPLINE_CORS_ORIGINS === '*') return {};
  return {
    HOPLINE_CORS_ORIGINS: [
      ...new Set([...(env.HOPLINE_CORS_ORIGINS ? env.HOPLINE_CORS_ORIGINS.split(',') : []), ...origins]),
    ].join(','),
  };
}

/** npm silently consumes an option before `--`: `npm start --port 8001` would start on port 8000. */
function requireOwnArguments(env: NodeJS.ProcessEnv): void {
  const taken = [['port', '8001'], ['agents', 'FILE'], ['origin', 'http://localhost:5173'], ['demo']].find(
    ([name]) => env[`npm_config_${name}`] !== undefined,
  );
  if (taken === undefined) return;
  const [name, example] = taken;
  // npm sets an option without a value to `true`.
  const given = env[`npm_config_${name}`];
  const option = example === undefined ? `--no-${name}` : `--${name} ${given && given !== 'true' ? given : example}`;
  throw new LaunchError(`npm took ${option} for itself; put options after \`--\`: npm start -- ${option}`);
}

/** The launcher, its commands and the console use plain HTTP for every process, so with TLS no process would ever be ready. */
function requireHttp(env: NodeJS.ProcessEnv): void {
  const name = ['HOPLINE_TLS_CERT_FILE', 'HOPLINE_TLS_KEY_FILE', 'HOPLINE_TLS_CLIENT_CA_FILE'].find(setting => env[setting]);
  if (name)
    throw new LaunchError(`${name}: the local cluster serves plain HTTP; unset this setting and terminate TLS in a proxy`);
}

/** The settings that the launcher reads itself and no service has. */
const OWN_SETTINGS = ['HOPLINE_AGENTS', 'HOPLINE_AGENT_ACCOUNTS', 'HOPLINE_HOME', 'HOPLINE_NATS_SERVER', 'HOPLINE_RELAYS'];

/** A service gets only the settings that it has, so none of them would notice a misspelt one. */
function requireKnownSettings(env: NodeJS.ProcessEnv): void {
  const unknown = unknownSettings(env, OWN_SETTINGS);
  if (unknown.length > 0) throw new LaunchError(`${unknown.join('; ')} (all settings: docs/reference/settings.md)`);
}

function readArguments(argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      options: {
        port: { type: 'string' },
        agents: { type: 'string' },
        origin: { type: 'string', multiple: true },
        'no-demo': { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/\.? To specify.*$/s, '') : String(error);
    throw new LaunchError(`${reason}; see \`npm start -- --help\``);
  }
}

/** Ingress would refuse it too, but would name a setting that the user has not set. */
function originOf(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).pathname === '/')
    return new URL(text).origin;
  throw new LaunchError(`--origin must be the scheme, host and port of a page, such as http://localhost:5173, not "${text}"`);
}

/** An existing server has its own accounts. */
function agentAccountsOf({ HOPLINE_AGENT_ACCOUNTS: setting = '', NATS_URL: natsUrl }: NodeJS.ProcessEnv): boolean | null {
  if (!['', 'true', 'false'].includes(setting))
    throw new LaunchError(`HOPLINE_AGENT_ACCOUNTS must be true or false, not "${setting}"`);
  if (setting === 'true' && natsUrl)
    throw new LaunchError(
      'HOPLINE_AGENT_ACCOUNTS: the server of NATS_URL has accounts of its own (infra/nats): unset one of the two',
    );
  return setting === '' ? null : setting === 'true';
}

function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new LaunchError(`${name} must be a whole number from ${min} to ${max}, not "${text}"`);
}

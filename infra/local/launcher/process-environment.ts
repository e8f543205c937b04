import { resolve } from 'node:path';
import type { UncheckedEntry } from './agents-file.ts';
import SETTINGS from './service-variables.json' with { type: 'json' };

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that every program may need: paths, language and time zone. The names after HOME are those that MCP servers inherit. */
const SYSTEM = ['PATH', 'TMPDIR', 'LANG', 'LANGUAGE', 'TZ', 'HOME', 'LOGNAME', 'SHELL', 'TERM', 'USER'];
/** Variables of Node. Excludes NODE_DEBUG, which writes requests with their headers to the log, and NODE_TLS_REJECT_UNAUTHORIZED. */
const NODE = [
  'NODE_ENV',
  'NODE_OPTIONS',
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_SYSTEM_CA',
  'NODE_USE_ENV_PROXY',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
];
/** Variables whose values may contain credentials. Only services that call servers outside the cluster get them. */
const PROXY = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap(name => [name, name.toLowerCase()]);
const WITH_OUTBOUND_CALLS = ['ingress', 'supervisor', 'sub-agent', 'notifier'];
/** Variables of the Go runtime. */
const GO = ['GOMAXPROCS', 'GOMEMLIMIT', 'GOGC'];
const PREFIXES = ['LC_'];
const NODE_PREFIXES = [...PREFIXES, 'OTEL_'];

/** Settings of a model server, for agents of the adapter `model` and for supervisors that plan with a model. */
const OPENAI = 'OPENAI_';
/** The name of an environment variable. */
const VARIABLE = /^[A-Za-z_]\w{0,127}$/;

/** Settings that are paths of files. */
const PATH_SETTING = /^(?:HOPLINE|NATS)_\w+_FILE$|^HOPLINE_PROFILE_MODULE$/;

/** The settings that are paths, relative to `folder` like --agents, because each process runs in a folder of its own. */
export function absolutePaths(inherited: Environment, folder: string): Record<string, string> {
  const paths = Object.entries(inherited).filter(([name, path]) => PATH_SETTING.test(name) && path);
  return Object.fromEntries(paths.map(([name, path = '']) => [name, resolve(folder, path)]));
}

/** The variables of the launcher's environment that the NATS server needs. */
export function natsEnvironment(inherited: Environment): NodeJS.ProcessEnv {
  return pick(inherited, [...SYSTEM, ...GO], PREFIXES);
}

/**
 * The variables of the launcher's environment that a service needs: its own settings and those of Node and OpenTelemetry. An agent gets the
 * variables that its own entry names, but not those that only other agents' entries name.
 */
export function serviceEnvironment(service: string, inherited: Environment, agent?: UncheckedEntry): NodeJS.ProcessEnv {
  const settings: readonly string[] = SETTINGS[service as keyof typeof SETTINGS] ?? [];
  const hasModel = service === 'supervisor' ? inherited.HOPLINE_PLANNER === 'model' : agent?.adapter === 'model';
  const ofService = hasModel ? settings : settings.filter(name => !name.startsWith(OPENAI));
  const proxy = WITH_OUTBOUND_CALLS.includes(service) ? PROXY : [];
  return pick(inherited, [...SYSTEM, ...NODE, ...proxy, ...ofService, ...variablesOf(agent)], NODE_PREFIXES);
}

function pick(inherited: Environment, names: readonly string[], prefixes: readonly string[]): NodeJS.ProcessEnv {
  const allowed = new Set(names);
  const isAllowed = (name: string) => allowed.has(name) || prefixes.some(prefix => name.startsWith(prefix));
  return Object.fromEntries(Object.entries(inherited).filter(([name]) => isAllowed(name)));
}

/** The variables that an entry names: the list `env`, and members whose names end with `Env`, at any depth. */
function variablesOf(value: unknown, member = ''): string[] {
  if (typeof value === 'string') return /^env$|Env$/.test(member) && VARIABLE.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  // `env` of an MCP server is an object of values, not of names.
  const inherited = Array.isArray(value) || member.endsWith('Env') ? member : '';
  return Object.entries(value).flatMap(([name, one]) => variablesOf(one, inherited || name));
}

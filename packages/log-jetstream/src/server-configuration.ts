import { requireAgent } from '@hopline/log';
import { LogNames } from './names.ts';
import { ANY_AGENT, type LogUser, type PermissionOptions, permissionsOf, SERVICE_USERS } from './users.ts';

/** Configuration of nats-server for the users of the log. */

/** `admin` may do everything: edit, purge and delete streams. No service uses it. */
export type ServerUser = LogUser | 'admin';

/** The password itself, or the environment variable of nats-server that contains it. */
export type Password = { text: string } | { variable: string };

export const ADMIN = 'admin';

/** All users of a cluster: the services, each agent, and people. The name of an agent becomes part of its subjects. */
export function serverUsers(agents: readonly string[]): ServerUser[] {
  for (const name of agents) requireAgent(name);
  return [ADMIN, ...SERVICE_USERS, ...agents.map(name => `agent.${name}` as const)];
}

/** Name of a user in NATS. Clusters that share an account have different ones. */
export function userName(user: ServerUser, prefix = ''): string {
  return new LogNames(prefix).subject(user === ANY_AGENT ? 'agent' : user);
}

/** `NATS_RELAY_PASSWORD` for relay. */
export function passwordVariable(user: ServerUser): string {
  const name = user === ANY_AGENT ? 'AGENT' : user.replace(/[.-]/g, '_').toUpperCase();
  return `NATS_${name}_PASSWORD`;
}

/** `groups`: the most stream groups that the log may have. */
type AuthorizationOptions = PermissionOptions & { prefix?: string | undefined; groups?: number };

/** The block `authorization` of a nats-server configuration. */
export function authorization(
  users: ReadonlyMap<ServerUser, Password>,
  { prefix = '', groups = 1, ...options }: AuthorizationOptions = {},
): string {
  const names = new LogNames(prefix, groups);
  const blocks = [...users].map(([user, password]) => userBlock(user, password, names, options));
  return `authorization {\n  users: [\n${blocks.join('\n')}\n  ]\n}\n`;
}

function userBlock(user: ServerUser, password: Password, names: LogNames, options: PermissionOptions): string {
  const secret = 'text' in password ? JSON.stringify(password.text) : `$${password.variable}`;
  const credentials = `user: ${JSON.stringify(userName(user, names.prefix))}, password: ${secret}`;
  if (user === ADMIN) return `    { ${credentials} }`;
  const { publish, publishDenied, subscribe } = permissionsOf(user, names, options);
  const denied = publishDenied.length > 0 ? [list('deny', publishDenied)] : [];
  return [
    `    { ${credentials}, permissions: {`,
    '      publish: {',
    list('allow', publish),
    ...denied,
    '      }',
    '      subscribe: {',
    list('allow', subscribe),
    '      }',
    '    } }',
  ].join('\n');
}

function list(name: string, subjects: readonly string[]): string {
  return [`        ${name}: [`, ...subjects.map(subject => `          ${JSON.stringify(subject)}`), '        ]'].join('\n');
}

import { readerSubject, readSubject } from '@hopline/events';
import { requireAgent } from '@hopline/log';
import { LogNames } from './names.ts';
import {
  type AgentUser,
  ANY_AGENT,
  exchangeOf,
  type LogUser,
  type PermissionOptions,
  permissionsOf,
  SERVICE_USERS,
} from './users.ts';

/** Configuration of nats-server for the users of the log. */

/** `admin` may do everything: edit, purge and delete streams. No service uses it. */
export type ServerUser = LogUser | 'admin';

/** The password itself, or the environment variable of nats-server that contains it. */
export type Password = { text: string } | { variable: string };

export const ADMIN = 'admin';

/** All users of a cluster: the services, each agent, and people. The name of an agent is part of its subjects. */
export function serverUsers(agents: readonly string[]): ServerUser[] {
  for (const name of agents) requireAgent(name);
  return [ADMIN, ...SERVICE_USERS, ...agents.map(name => `agent.${name}` as const)];
}

/** Name of a user in NATS. Clusters that share an account have different user names. */
export function userName(user: ServerUser, prefix = ''): string {
  return new LogNames(prefix).subject(user === ANY_AGENT ? 'agent' : user);
}

/** `NATS_RELAY_PASSWORD` for relay. */
export function passwordVariable(user: ServerUser): string {
  const name = user === ANY_AGENT ? 'AGENT' : user.replace(/[.-]/g, '_').toUpperCase();
  return `NATS_${name}_PASSWORD`;
}

/** `groups`: the largest number of stream groups that the log may have. */
type AccountsOptions = { prefix?: string | undefined; groups?: number };
type AuthorizationOptions = PermissionOptions & AccountsOptions;

const PULL = '$JS.API.CONSUMER.MSG.NEXT.';
/** Limits of an agent's account. The limit of subscriptions applies to each connection. */
export const AGENT_LIMITS = '{ max_connections: 1024, max_subscriptions: 8192 }';
/**
 * How long NATS keeps a place for the answer to a request of an agent. A place takes about a kilobyte, and a request that is never answered
 * keeps it for up to twice this time. This is longer than a worker's pull and than any delay of an answer; a worker requests a missing
 * confirmation again.
 */
const ANSWER_WAITS: [prefix: string, wait: string][] = [
  ['$JS.ACK.', '5s'],
  [PULL, '15s'],
  ['', '30s'],
];

/** The block `authorization` of a nats-server configuration. */
export function authorization(
  users: ReadonlyMap<ServerUser, Password>,
  { prefix = '', groups = 1, ...options }: AuthorizationOptions = {},
): string {
  const names = new LogNames(prefix, groups);
  const blocks = [...users].map(([user, password]) => userBlock(user, password, names, options));
  return `authorization {\n  users: [\n${blocks.join('\n')}\n  ]\n}\n`;
}

/**
 * The block `accounts` of a nats-server configuration, which replaces `authorization`: the log and the users of the services are in one
 * account, and each agent is in an account of its own. NATS replaces the reply subjects of imported requests, so no request of an agent can
 * name a subject of the log.
 */
export function accounts(users: ReadonlyMap<ServerUser, Password>, { prefix = '', groups = 1 }: AccountsOptions = {}): string {
  const names = new LogNames(prefix, groups);
  const log = accountOf('relay', prefix);
  const named = [...users.keys()]
    .filter(user => isAgentUser(user) && user !== ANY_AGENT)
    .map(user => user.slice('agent.'.length));
  const ofOthers = named.flatMap(name => [readSubject(name), readerSubject(name, '*')]).map(subject => names.subject(subject));
  // The processes of one agent must be in one account; otherwise they could not ask each other. Without reads no agent starts.
  const deniedOf = (user: ServerUser) => (user === ANY_AGENT ? ofOthers : []);
  const all = [...users].map(([user, password]) => ({
    user,
    block: userBlock(user, password, names, { denied: deniedOf(user) }),
  }));
  const agents = all.flatMap(({ user, block }) =>
    isAgentUser(user) ? [{ account: accountOf(user, prefix), block, exchange: exchangeOf(user, names) }] : [],
  );
  const blocks = [
    accountBlock(log, ['    jetstream: enabled'], {
      users: all.filter(({ user }) => !isAgentUser(user)).map(({ block }) => block),
      exports: agents.flatMap(({ account, exchange: { services, fromLog } }) => [
        ...services.map(subject => exported({ service: subject }, account)),
        ...fromLog.map(subject => exported({ stream: subject }, account)),
      ]),
      imports: agents.flatMap(({ account, exchange }) => exchange.toLog.map(subject => imported('stream', subject, account))),
    }),
    ...agents.map(({ account, block, exchange: { services, toLog, fromLog } }) =>
      accountBlock(account, [`    limits ${AGENT_LIMITS}`], {
        users: [block],
        exports: toLog.map(subject => exported({ stream: subject }, log)),
        imports: [
          ...services.map(subject => imported('service', subject, log)),
          ...fromLog.map(subject => imported('stream', subject, log)),
        ],
      }),
    ),
  ];
  return `accounts {\n${blocks.join('\n')}\n}\n`;
}

/** The account of a user if agents have accounts of their own; all other users have that of the log. */
export function accountOf(user: ServerUser, prefix = ''): string {
  return isAgentUser(user) ? userName(user, prefix) : new LogNames(prefix).subject('hopline');
}

function isAgentUser(user: ServerUser): user is AgentUser {
  return user.startsWith('agent.');
}

function accountBlock(name: string, lines: readonly string[], lists: Record<string, readonly string[]>): string {
  const blocks = Object.entries(lists).flatMap(([list, entries]) => [`    ${list}: [`, ...entries, '    ]']);
  return [`  ${JSON.stringify(name)}: {`, ...lines, ...blocks, '  }'].join('\n');
}

function exported(what: { service: string } | { stream: string }, to: string): string {
  const accounts = `accounts: [${JSON.stringify(to)}]`;
  if ('stream' in what) return `      { stream: ${JSON.stringify(what.stream)}, ${accounts} }`;
  const { response, threshold } = answerTerms(what.service);
  return `      { service: ${JSON.stringify(what.service)}, ${accounts}, response: ${response}, threshold: "${threshold}" }`;
}

/** How nats-server treats the answers of a service. A pull has several messages as its answer. */
export function answerTerms(service: string): { response: 'stream' | 'single'; threshold: string } {
  const [, threshold] = ANSWER_WAITS.find(([prefix]) => service.startsWith(prefix))!;
  return { response: service.startsWith(PULL) ? 'stream' : 'single', threshold };
}

function imported(kind: 'service' | 'stream', subject: string, from: string): string {
  return `      { ${kind}: { account: ${JSON.stringify(from)}, subject: ${JSON.stringify(subject)} } }`;
}

function userBlock(
  user: ServerUser,
  password: Password,
  names: LogNames,
  { denied: more = [], ...options }: PermissionOptions & { denied?: readonly string[] },
): string {
  const secret = 'text' in password ? JSON.stringify(password.text) : `$${password.variable}`;
  const credentials = `user: ${JSON.stringify(userName(user, names.prefix))}, password: ${secret}`;
  if (user === ADMIN) return `    { ${credentials} }`;
  const { publish, publishDenied, subscribe } = permissionsOf(user, names, options);
  const allDenied = [...publishDenied, ...more];
  const denied = allDenied.length > 0 ? [list('deny', allDenied)] : [];
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

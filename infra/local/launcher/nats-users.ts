import { randomBytes } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { COMMAND_USERS, type CommandLogins } from '@hopline/local-cluster';
import {
  ANY_AGENT,
  accountOf,
  accounts,
  authorization,
  hasAgentAccounts,
  LogNames,
  type LogUser,
  type ServerUser,
  serverUsers,
  userName,
} from '@hopline/log-jetstream';
import type { Home } from './home.ts';
import { LaunchError } from './launch-error.ts';

/** Bytes of a password, enough that it cannot be guessed. */
const PASSWORD_BYTES = 24;
/** The account of nats-server for users without one. */
const DEFAULT_ACCOUNT = '$G';

/** Settings with which a service connects. The empty ones hide credentials of the environment that are meant for another server. */
type NatsLogin = Record<'NATS_USER' | 'NATS_PASSWORD' | 'NATS_TOKEN' | 'NATS_CREDS' | 'NATS_CREDS_FILE', string>;

/**
 * The NATS users of one start: one for each service and agent, with a password that only its process receives, in its environment. Commands
 * that the same person runs read their login from a file in the home.
 */
export class NatsUsers {
  readonly #passwords: ReadonlyMap<ServerUser, { text: string }>;
  readonly #prefix: string | undefined;
  readonly #groups: number;
  readonly #agentAccounts: boolean;

  /** `groups`: stream groups of the log. `agentAccounts`: each agent has an account of its own. */
  constructor(
    agents: readonly string[],
    prefix: string | undefined,
    { groups = 1, agentAccounts = true }: { groups?: number; agentAccounts?: boolean } = {},
  ) {
    const users = [...serverUsers(agents), ANY_AGENT] as const;
    this.#passwords = new Map(users.map(user => [user, { text: randomBytes(PASSWORD_BYTES).toString('base64url') }]));
    this.#prefix = prefix;
    this.#groups = groups;
    this.#agentAccounts = agentAccounts;
  }

  /** For the configuration of nats-server. */
  get configuration(): string {
    const options = { prefix: this.#prefix, groups: this.#groups };
    return this.#agentAccounts ? accounts(this.#passwords, options) : authorization(this.#passwords, options);
  }

  loginOf(user: LogUser): NatsLogin {
    const { user: name, password } = this.#credentials(user);
    return { NATS_USER: name, NATS_PASSWORD: password, NATS_TOKEN: '', NATS_CREDS: '', NATS_CREDS_FILE: '' };
  }

  /** Writes the logins of `hopline` commands and of the admin. Only their owner may read them. */
  writeCommandLogins(path: string): void {
    const logins = Object.fromEntries(COMMAND_USERS.map(user => [user, this.#credentials(user === 'agent' ? ANY_AGENT : user)]));
    writePrivateFile(path, `${JSON.stringify(logins satisfies Partial<CommandLogins>, null, 2)}\n`);
  }

  #credentials(user: ServerUser): { user: string; password: string } {
    const password = this.#passwords.get(user)?.text;
    if (password === undefined) throw new TypeError(`NATS user ${user} does not exist`);
    return { user: userName(user, this.#prefix), password };
  }
}

type AccountsChoice = { prefix: string | undefined; setting: boolean | null; serverVersion: string };

/**
 * Whether each agent has an account of its own: `setting`, or without one the form of the log in the home, which is never moved by itself.
 * A new log gets the accounts if the server can have them. Throws a LaunchError if the setting would make NATS start with an empty log
 * beside the one that exists, and if the server is too old.
 */
export function agentAccountsFor({ store }: Home, { prefix, setting, serverVersion }: AccountsChoice): boolean {
  const hasLogIn = (account: string) =>
    existsSync(join(store, 'jetstream', account, 'streams', new LogNames(prefix).factsStreams[0]!));
  const inOneAccount = hasLogIn(DEFAULT_ACCOUNT);
  const withAccounts = hasLogIn(accountOf('relay', prefix));
  if (setting === null && inOneAccount && withAccounts)
    throw new LaunchError(`the store ${store} has a log of each form: set HOPLINE_AGENT_ACCOUNTS to true or false to choose one`);
  const canHaveAccounts = hasAgentAccounts(serverVersion);
  const agentAccounts = setting ?? (withAccounts || (canHaveAccounts && !inOneAccount));
  const [own, other] = agentAccounts ? [withAccounts, inOneAccount] : [inOneAccount, withAccounts];
  if (other && !own)
    throw new LaunchError(
      `the log in ${store} was created with HOPLINE_AGENT_ACCOUNTS=${!agentAccounts}: unset it, choose another HOPLINE_HOME, or move the log (docs/guides/upgrading.md)`,
    );
  if (agentAccounts && !canHaveAccounts)
    throw new LaunchError(
      `${withAccounts ? `the log in ${store}` : 'HOPLINE_AGENT_ACCOUNTS=true'} needs nats-server 2.10.0 or newer, and this one is ${serverVersion}: set HOPLINE_NATS_SERVER to a newer one`,
    );
  return agentAccounts;
}

/**
 * The line for a server that is too old to give each agent an account. The bootstrap keeps a program that it has fetched once, even if it
 * could now fetch a newer one. Undefined if the server is new enough, or the one account was chosen.
 */
export function oldServerNotice(server: string, { setting, serverVersion }: Omit<AccountsChoice, 'prefix'>): string | undefined {
  if (setting === false || hasAgentAccounts(serverVersion)) return undefined;
  const folder = dirname(server);
  const isFetched = basename(folder).startsWith('nats-server-');
  const replace = isFetched ? `remove ${folder} and start again` : 'set HOPLINE_NATS_SERVER to nats-server 2.10 or newer';
  return `nats-server ${serverVersion} keeps all agents in one account, where a stolen login of one can delay the others; for an account each, ${replace} (a log that exists: docs/guides/upgrading.md#accounts-for-agents)`;
}

/** A file that only its owner may read, even if it existed with another mode. */
export function writePrivateFile(path: string, text: string): void {
  rmSync(path, { force: true });
  writeFileSync(path, text, { mode: 0o600 });
}

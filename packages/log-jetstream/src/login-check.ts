import type { ServerInfo } from '@nats-io/nats-core';
import type { Connection } from './connection.ts';
import { consumerName, type LogNames } from './names.ts';
import { accountOf } from './server-configuration.ts';
import { type AgentUser, ANY_AGENT, inboxOf, type LogUser } from './users.ts';

/**
 * Three rights that no service has if NATS has the users of infra/nats: to receive the answers of other users, to ask for the consumers of facts, and to reach
 * the consumers of others with an acknowledgement, which configurations from before ADR 268 permit. The three requests have no effect where they are permitted.
 */
const PROBE = 'permission-check';

/**
 * Reports a login that permits more than the service needs: NATS asks for none, all services share an account without permissions, or all agents share a
 * user. nats-server logs the three refused requests, so each process sends them once, at its start.
 */
export async function checkLogin(connection: Connection, user: LogUser): Promise<void> {
  const { nc, names } = connection;
  if (nc.info?.auth_required !== true) return report(connection, 'NATS asks for no login');
  const inbox = `${inboxOf('operator', names)}.${PROBE}.${user}`;
  const facts = `$JS.API.CONSUMER.INFO.${names.factsStreams[0]}.${PROBE}`;
  const acks = acksOfOther(user, names);
  const denied = await connection.deniedOf([facts, inbox, acks], () => {
    nc.subscribe(inbox, { callback: () => {} }).unsubscribe();
    nc.publish(facts);
    nc.publish(acks);
  });
  reportAccount(connection, user);
  const permitted = [inbox, facts, acks].filter(subject => !denied.has(subject));
  if (permitted.length > 0) return report(connection, `it permits ${permitted.join(' and ')}, which no user of Hopline needs`);
  if (connection.userName === userNameOfAnyAgent(connection)) report(connection, 'all agents share it');
}

/** An acknowledgement with the stream and the consumer of the user where numbers belong. */
function acksOfOther(user: LogUser, names: LogNames): string {
  const consumer = consumerName(user.startsWith('agent.') ? (user as AgentUser) : 'supervisor', undefined);
  return `$JS.ACK.${names.factsStreams[0]}.${PROBE}.${names.workStream}.${consumer}.1.1.1`;
}

/** nats-server names the account after its first answer to a flush. Earlier versions do not. */
function reportAccount({ nc, names, onEvent }: Connection, user: LogUser): void {
  const { remote_account: account } = nc.info as ServerInfo & { remote_account?: string };
  const isAgent = user.startsWith('agent.');
  if (account === undefined || (!isAgent && user !== 'relay')) return;
  const isOwn = [user, ANY_AGENT].some(agent => account === accountOf(agent as AgentUser, names.prefix));
  onEvent({ type: 'account', account, why: isAgent && isOwn ? 'an account of this agent' : 'the account of the log' });
}

function report(connection: Connection, why: string): void {
  connection.onEvent({ type: 'login-wide', why });
}

function userNameOfAnyAgent({ names }: Connection): string {
  return names.subject(ANY_AGENT.replace('.*', ''));
}

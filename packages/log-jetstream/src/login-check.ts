import type { Connection } from './connection.ts';
import { ANY_AGENT, inboxOf, type LogUser } from './users.ts';

/**
 * Two rights that no service has if NATS is configured by infra/nats: to receive the answers of other users, and to list the consumers of
 * facts. Using either right changes nothing.
 */
const PROBE = 'permission-check';

/**
 * Reports a login that permits more than the service needs: NATS requires no login, all services share an account without permissions, or
 * all agents share a user. nats-server logs the two refused requests, so each process sends them once, at its start.
 */
export async function checkLogin(connection: Connection, user: LogUser): Promise<void> {
  const { nc, names } = connection;
  if (nc.info?.auth_required !== true) return report(connection, 'NATS asks for no login');
  const inbox = `${inboxOf('operator', names)}.${PROBE}.${user}`;
  const facts = `$JS.API.CONSUMER.INFO.${names.factsStreams[0]}.${PROBE}`;
  const denied = await connection.deniedOf([facts, inbox], () => {
    nc.subscribe(inbox, { callback: () => {} }).unsubscribe();
    nc.publish(facts);
  });
  const permitted = [inbox, facts].filter(subject => !denied.has(subject));
  if (permitted.length > 0) return report(connection, `it permits ${permitted.join(' and ')}, which no user of Hopline needs`);
  if (connection.userName === userNameOfAnyAgent(connection)) report(connection, 'all agents share it');
}

function report(connection: Connection, why: string): void {
  connection.onEvent({ type: 'login-wide', why });
}

function userNameOfAnyAgent({ names }: Connection): string {
  return names.subject(ANY_AGENT.replace('.*', ''));
}

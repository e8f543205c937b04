import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  ADMIN,
  ANY_AGENT,
  accounts,
  authorization,
  type LogEvent,
  type LogUser,
  openJetStreamLog,
  type ServerUser,
  serverUsers,
  userName,
} from '@hopline/log-jetstream';
import { createLogger, LINE } from '@hopline/telemetry';
import { LogLines } from '../../../packages/log-jetstream/src/log-lines.ts';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';

const SERVICES: LogUser[] = ['relay', 'ingress', 'supervisor', 'notifier', 'agent.guide'];
const PASSWORDS = new Map<ServerUser, { text: string }>();
for (const user of [...serverUsers(['guide']), ANY_AGENT] as const) PASSWORDS.set(user, { text: user });

/** The events of a service that opens the log, and closes it at once. */
async function eventsOf(server: NatsServer, user: LogUser, login?: ServerUser): Promise<LogEvent[]> {
  const events: LogEvent[] = [];
  const credentials = login && { credentials: { user: userName(login), pass: login } };
  const onEvent = (event: LogEvent) => events.push(event);
  const log = await openJetStreamLog({ servers: server.url, name: 'test', user, ...credentials, checksLogin: true, onEvent });
  await log.close();
  return events;
}

describe('the login of a service at its start', { timeout: 120_000 }, () => {
  test('a server without users is reported, once', async t => {
    const server = await startNats();
    t.after(() => server.stop());
    const relay = await openJetStreamLog({ servers: server.url, name: 'test', user: 'relay' });
    t.after(() => relay.close());
    for (const user of SERVICES)
      assert.deepEqual(await eventsOf(server, user), [{ type: 'login-wide', why: 'NATS asks for no login' }], user);
  });

  test('the users of infra/nats cause no event, and one user for all agents or for everything does', async t => {
    const server = await startNats({ config: authorization(PASSWORDS) });
    t.after(() => server.stop());
    const credentials = { user: 'relay', pass: 'relay' };
    const relay = await openJetStreamLog({ servers: server.url, name: 'test', user: 'relay', credentials });
    t.after(() => relay.close());
    const account = { type: 'account', account: '$G', why: 'the account of the log' };
    for (const user of SERVICES) {
      const expected = user === 'relay' || user === 'agent.guide' ? [account] : [];
      assert.deepEqual(await eventsOf(server, user, user), expected, user);
    }
    const shared = { type: 'login-wide', why: 'all agents share it' };
    assert.deepEqual(await eventsOf(server, 'agent.guide', ANY_AGENT), [account, shared]);
    const [first, event, ...more] = await eventsOf(server, 'agent.guide', ADMIN);
    assert.deepEqual([first, ...more], [account]);
    assert.match(
      event?.type === 'login-wide' ? event.why : '',
      /^it permits _INBOX\.hopline\.operator\.permission-check\.agent\.guide and \$JS\.API\.CONSUMER\.INFO\.A2A_LOG\.permission-check and \$JS\.ACK\.A2A_LOG\.permission-check\.A2A_WORK\.agent-guide\.1\.1\.1, /,
    );
  });

  test('an agent with an account of its own reports it', async t => {
    const server = await startNats({ config: accounts(PASSWORDS) });
    t.after(() => server.stop());
    const credentials = { user: 'relay', pass: 'relay' };
    const relay = await openJetStreamLog({ servers: server.url, name: 'test', user: 'relay', credentials });
    t.after(() => relay.close());
    assert.deepEqual(await eventsOf(server, 'relay', 'relay'), [
      { type: 'account', account: 'hopline', why: 'the account of the log' },
    ]);
    const own = { type: 'account', account: 'agent.guide', why: 'an account of this agent' };
    assert.deepEqual(await eventsOf(server, 'agent.guide', 'agent.guide'), [own]);
  });

  test('a configuration that lets an acknowledgement reach consumers of others is reported', async t => {
    const acks = '$JS.ACK.*.*.A2A_WORK.agent-guide';
    const config = authorization(PASSWORDS).replace(`"${acks}.*.*.*.*.>"`, () => `"${acks}.>"`);
    const server = await startNats({ config });
    t.after(() => server.stop());
    const credentials = { user: 'relay', pass: 'relay' };
    const relay = await openJetStreamLog({ servers: server.url, name: 'test', user: 'relay', credentials });
    t.after(() => relay.close());
    const why = 'it permits $JS.ACK.A2A_LOG.permission-check.A2A_WORK.agent-guide.1.1.1, which no user of Hopline needs';
    const events = await eventsOf(server, 'agent.guide', 'agent.guide');
    assert.deepEqual(
      events.filter(({ type }) => type === 'login-wide'),
      [{ type: 'login-wide', why }],
    );
  });

  test('the event is one line of the log', () => {
    const lines: { msg: string; level: unknown; reason?: string }[] = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
    const logger = createLogger({ service: 'relay', instance: 'test', level: 'debug', destination });
    const written = new LogLines(logger);
    written.onEvent({ type: 'login-wide', why: 'all agents share it' });
    written.onEvent({ type: 'account', account: 'agent.guide', why: 'an account of this agent' });
    assert.deepEqual(
      lines.map(({ msg, level, reason }) => [msg, level, reason]),
      [
        [LINE.loginWide, 'warn', 'all agents share it'],
        [LINE.account, 'info', 'an account of this agent'],
      ],
    );
  });
});

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createHome, homePaths } from './home.ts';
import { INSTALLATION } from './installation.ts';
import { natsProcess } from './nats-process.ts';
import { agentAccountsFor, NatsUsers, oldServerNotice } from './nats-users.ts';
import { serviceProcesses } from './service-processes.ts';

const AGENTS = { folder: '/', path: '/agents.json', agents: ['guide', 'files'].map(name => ({ name, adapter: 'a2a' })) };
const PLAN = {
  installation: INSTALLATION,
  natsUrl: 'nats://n',
  host: '127.0.0.1',
  ingressPort: 1,
  grpcPort: 2,
  consolePort: 3,
  profile: 'caipe',
  relays: 2,
};

test('each service gets its own user and password, but none of the environment’s credentials for another server', async t => {
  const home = homePaths(mkdtempSync(join(tmpdir(), 'hopline-')));
  t.after(() => rmSync(home.folder, { recursive: true }));
  const natsUsers = new NatsUsers(['guide', 'files'], 'blue');
  const specs = serviceProcesses({ ...PLAN, home, agents: AGENTS, natsUsers });
  const starts = await Promise.all(specs.map(async ({ instance, prepare }) => ({ instance, env: (await prepare()).env })));
  const users = Object.fromEntries(starts.map(({ instance, env }) => [instance, env.NATS_USER]));
  assert.deepEqual(users, {
    'ingress-1': 'blue.ingress',
    'console-1': undefined,
    'supervisor-1': 'blue.supervisor',
    'sub-agent-guide': 'blue.agent.guide',
    'sub-agent-files': 'blue.agent.files',
    'relay-1': 'blue.relay',
    'relay-2': 'blue.relay',
    'notifier-1': 'blue.notifier',
  });
  const webConsole = starts.find(({ instance }) => instance === 'console-1')!;
  assert.deepEqual(
    Object.keys(webConsole.env).filter(name => name.startsWith('NATS_')),
    [],
    'the console has no access to the log',
  );
  const withAccess = starts.filter(one => one !== webConsole);
  const passwords = new Set(withAccess.map(({ env }) => env.NATS_PASSWORD));
  assert.equal(passwords.size, withAccess.length - 1, 'both relays have one user');
  for (const { env } of withAccess) {
    assert.deepEqual([env.NATS_TOKEN, env.NATS_CREDS, env.NATS_CREDS_FILE], ['', '', '']);
    const others = [...passwords].filter(password => password !== env.NATS_PASSWORD);
    for (const password of others) assert.ok(!JSON.stringify(env).includes(String(password)));
  }
});

test('passwords are new at each start, in files that only their owner may read, even if the file already existed', async t => {
  const home = homePaths(mkdtempSync(join(tmpdir(), 'hopline-')));
  t.after(() => rmSync(home.folder, { recursive: true }));
  createHome(home);
  for (const path of [home.natsConfig, home.natsUsers]) {
    writeFileSync(path, 'old');
    chmodSync(path, 0o644);
  }
  const [users, later] = [new NatsUsers(['guide'], undefined), new NatsUsers(['guide'], undefined)];
  assert.notEqual(users.loginOf('relay').NATS_PASSWORD, later.loginOf('relay').NATS_PASSWORD);
  assert.throws(() => users.loginOf('agent.other'), /NATS user agent\.other does not exist/);
  users.writeCommandLogins(home.natsUsers);
  await natsProcess(home, 'nats-server', { port: 4222, monitor: 8222 }, '/', users).prepare();
  for (const path of [home.natsConfig, home.natsUsers]) assert.equal(statSync(path).mode & 0o777, 0o600, path);
  assert.ok(readFileSync(home.natsConfig, 'utf8').includes(users.loginOf('relay').NATS_PASSWORD));
  const logins = JSON.parse(readFileSync(home.natsUsers, 'utf8'));
  assert.deepEqual(
    Object.entries(logins).map(([name, login]) => [name, (login as { user: string }).user]),
    [
      ['operator', 'operator'],
      ['agent', 'agent'],
      ['admin', 'admin'],
    ],
  );
  assert.ok(!JSON.stringify(logins).includes(users.loginOf('relay').NATS_PASSWORD), 'services are not listed');
});

test('a new log gives each agent an account, and an existing log keeps its form', t => {
  const home = homePaths(mkdtempSync(join(tmpdir(), 'hopline-')));
  t.after(() => rmSync(home.folder, { recursive: true }));
  const prefix = 'blue';
  const choose = (setting: boolean | null) => agentAccountsFor(home, { prefix, setting, serverVersion: '2.15.2' });
  const chooseForOld = (setting: boolean | null) => agentAccountsFor(home, { prefix, setting, serverVersion: '2.9.10' });
  const create = (account: string, stream: string) =>
    mkdirSync(join(home.store, 'jetstream', account, 'streams', stream), { recursive: true });
  assert.deepEqual([null, true, false].map(choose), [true, true, false]);
  assert.deepEqual([null, false].map(chooseForOld), [false, false]);
  assert.throws(() => chooseForOld(true), {
    name: 'LaunchError',
    message:
      /^HOPLINE_AGENT_ACCOUNTS=true needs nats-server 2\.10\.0 or newer, and this one is 2\.9\.10: set HOPLINE_NATS_SERVER/,
  });
  // The log of another cluster, whose prefix this one does not have.
  create('$G', 'A2A_LOG');
  assert.deepEqual([null, true, false].map(choose), [true, true, false]);

  create('$G', 'blue_A2A_LOG');
  assert.deepEqual([null, false].map(choose), [false, false]);
  assert.throws(() => choose(true), {
    name: 'LaunchError',
    message:
      /^the log in .* was created with HOPLINE_AGENT_ACCOUNTS=false: unset it, choose another HOPLINE_HOME, or move the log/,
  });
  create('blue.hopline', 'blue_A2A_LOG');
  assert.deepEqual([true, false].map(choose), [true, false]);
  assert.throws(() => choose(null), /has a log of each form: set HOPLINE_AGENT_ACCOUNTS to true or false/);

  rmSync(join(home.store, 'jetstream'), { recursive: true });
  create('blue.hopline', 'blue_A2A_LOG');
  assert.deepEqual([null, true].map(choose), [true, true]);
  assert.throws(() => choose(false), /was created with HOPLINE_AGENT_ACCOUNTS=true/);
  assert.throws(() => chooseForOld(null), /^LaunchError: the log in .* needs nats-server 2\.10\.0 or newer/);
});

test('a server that is too old for accounts of agents is named, with its cost and how to replace it', () => {
  const notice = (server: string, serverVersion: string, setting: boolean | null = null) =>
    oldServerNotice(server, { setting, serverVersion });
  const cached = '/home/me/.cache/hopline/nats-server-debian-package-linux-x64';
  assert.match(
    notice(`${cached}/nats-server`, '2.9.10') ?? '',
    /^nats-server 2\.9\.10 keeps all agents in one account, .* remove \/home\/me\/\.cache\/hopline\/nats-server-debian-package-linux-x64 and start again/,
  );
  assert.match(notice('/usr/sbin/nats-server', '2.9.10') ?? '', /set HOPLINE_NATS_SERVER to nats-server 2\.10 or newer/);
  assert.equal(notice(`${cached}/nats-server`, '2.15.2'), undefined);
  assert.equal(notice(`${cached}/nats-server`, '2.9.10', false), undefined);
});

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { logSettingsOf, logsFolder, runningCluster } from './running-cluster.ts';

const natsOf = (environment: Record<string, string>) => logSettingsOf(environment, 'operator').NATS_URL;

test('the cluster is found by NATS_URL, then by run.json in the home; without either the error names both', async t => {
  const home = await mkdtemp(join(tmpdir(), 'hopline-home-'));
  t.after(() => rm(home, { recursive: true }));
  const fails = () =>
    assert.throws(() => natsOf({ HOPLINE_HOME: home }), {
      name: 'EnvironmentError',
      message: /no local cluster is running .* npm start/,
    });
  fails();
  for (const text of ['not json', '{}', '{"processes":[{"service":"relay","url":"x"}]}', '{"processes":[{"service":"nats"}]}']) {
    await writeFile(join(home, 'run.json'), text);
    fails();
  }
  const processes = [
    { service: 'relay', url: 'http://127.0.0.1:1' },
    { service: 'nats', url: 'nats://127.0.0.1:4222' },
  ];
  await writeFile(join(home, 'run.json'), JSON.stringify({ processes }));
  assert.equal(natsOf({ HOPLINE_HOME: home }), 'nats://127.0.0.1:4222');
  await writeFile(join(home, 'run.json'), JSON.stringify({ nats: 'nats://existing:4222', processes: processes.slice(0, 1) }));
  assert.equal(natsOf({ HOPLINE_HOME: home }), 'nats://existing:4222', 'a server that the launcher did not start');
  assert.equal(runningCluster({ HOPLINE_HOME: home }).processes.length, 1);
  await writeFile(join(home, 'run.json'), JSON.stringify({ nats: 'nats://n:1', prefix: 'blue', processes: [] }));
  assert.deepEqual(logSettingsOf({ HOPLINE_HOME: home }, 'operator'), { NATS_URL: 'nats://n:1', HOPLINE_PREFIX: 'blue' });
  assert.deepEqual(logSettingsOf({ HOPLINE_HOME: home, HOPLINE_PREFIX: 'own' }, 'operator'), { NATS_URL: 'nats://n:1' });
  assert.equal(natsOf({ HOPLINE_HOME: home, NATS_URL: 'nats://elsewhere:4222' }), 'nats://elsewhere:4222');
  const login = { user: 'blue.agent', password: 'secret' };
  await writeFile(join(home, 'nats-users.json'), JSON.stringify({ agent: login }));
  // Credentials in the environment are meant for another server, and two kinds at once would be an error.
  assert.deepEqual(logSettingsOf({ HOPLINE_HOME: home, NATS_TOKEN: 'other' }, 'agent'), {
    NATS_URL: 'nats://n:1',
    HOPLINE_PREFIX: 'blue',
    NATS_USER: login.user,
    NATS_PASSWORD: login.password,
    NATS_TOKEN: '',
    NATS_CREDS: '',
    NATS_CREDS_FILE: '',
  });
  assert.equal(logSettingsOf({ HOPLINE_HOME: home }, 'operator').NATS_USER, undefined);
});

test('logs are found without a running cluster; if there are none, the error names the command that makes them', async t => {
  const home = await mkdtemp(join(tmpdir(), 'hopline-home-'));
  t.after(() => rm(home, { recursive: true }));
  assert.throws(() => logsFolder({ HOPLINE_HOME: home }), {
    name: 'EnvironmentError',
    message: /there are no logs in .* npm start/,
  });
  await mkdir(join(home, 'logs'));
  assert.equal(logsFolder({ HOPLINE_HOME: home }), join(home, 'logs'));
});

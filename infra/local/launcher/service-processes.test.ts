import assert from 'node:assert/strict';
import { test } from 'node:test';
import { homePaths } from './home.ts';
import { INSTALLATION } from './installation.ts';
import { serviceProcesses } from './service-processes.ts';

const PLAN = {
  home: homePaths('/home-of-the-cluster'),
  installation: INSTALLATION,
  natsUrl: 'nats://n',
  natsUsers: undefined,
  host: '127.0.0.1',
  ingressPort: 1,
  grpcPort: 2,
  consolePort: 3,
  profile: 'caipe',
  relays: 1,
  agents: { folder: '/', path: '/agents.json', agents: [] },
};

/** Names of the processes that may ask the launcher to kill another process. */
const killers = (plan: object, env: NodeJS.ProcessEnv) =>
  serviceProcesses({ ...PLAN, ...plan }, env)
    .filter(({ exchangesMessages }) => exchangesMessages)
    .map(({ instance }) => instance);

test('the console may kill processes only if the user of this machine is the only one who can reach it', () => {
  for (const [plan, env] of [
    [{}, {}],
    [{ host: 'localhost' }, { HOPLINE_PUBLIC_URL: '' }],
    [{}, { HOPLINE_PUBLIC_URL: 'http://localhost:9000/', HOPLINE_CONSOLE_URL: 'http://[::1]:8090/' }],
  ] as const)
    assert.deepEqual(killers(plan, env), ['console-1'], JSON.stringify([plan, env]));
  for (const [plan, env] of [
    [{ host: '0.0.0.0' }, {}],
    [{}, { HOPLINE_PUBLIC_URL: 'https://hopline.example/' }],
    [{}, { HOPLINE_CONSOLE_URL: 'https://console.example/' }],
    [{}, { HOPLINE_PUBLIC_URL: 'not an address' }],
    [{}, { HOPLINE_AUTH_API_KEYS_FILE: 'keys.json' }],
    [{}, { HOPLINE_AUTH_ISSUER: 'https://issuer.example/' }],
    [{}, { HOPLINE_TLS_CLIENT_CA_FILE: 'clients.pem' }],
  ] as const)
    assert.deepEqual(killers(plan, env), [], JSON.stringify([plan, env]));
});

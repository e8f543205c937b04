import assert from 'node:assert/strict';
import { test } from 'node:test';
import { corsSetting, parseOptions } from './options.ts';

const parse = (argv: string[], env: NodeJS.ProcessEnv = {}) => parseOptions(argv, env, '/here', '/checkout');

test('the defaults are port 8000, the demo, and the home in the checkout', () => {
  assert.deepEqual(parse([]), {
    port: 8000,
    host: '127.0.0.1',
    grpcPort: 0,
    agentsFile: null,
    runsDemo: true,
    profile: 'caipe',
    home: '/checkout/.hopline',
    natsUrl: null,
    origins: [],
    relays: 1,
    agentAccounts: null,
    help: false,
  });
});

test('the command line overrides the environment; paths are relative to the working directory', () => {
  const env = {
    HOPLINE_PORT: '9000',
    HOPLINE_GRPC_PORT: '9001',
    HOPLINE_AGENTS: 'env.json',
    HOPLINE_HOME: 'home',
    HOPLINE_PROFILE: 'transparent',
    HOPLINE_RELAYS: '2',
    NATS_URL: 'nats://n',
  };
  const { port, grpcPort, agentsFile, home, profile, relays, natsUrl } = parse(['--agents', 'mine.json', '--no-demo'], env);
  assert.deepEqual(
    [port, grpcPort, agentsFile, home, profile, relays, natsUrl],
    [9000, 9001, '/here/mine.json', '/here/home', 'transparent', 2, 'nats://n'],
  );
  assert.equal(parse(['--port', '0'], env).port, 0);
  assert.equal(parse([], env).agentsFile, '/here/env.json');
});

test('ports and relays are bounded, and the error names the bounds', () => {
  assert.equal(parse(['--port', '65535']).port, 65_535);
  assert.throws(() => parse(['--port', '65536']), {
    name: 'LaunchError',
    message: '--port must be a whole number from 0 to 65535, not "65536"',
  });
  assert.throws(() => parse([], { HOPLINE_PORT: '80x' }), /HOPLINE_PORT must be/);
  assert.throws(() => parse([], { HOPLINE_GRPC_PORT: '65536' }), /HOPLINE_GRPC_PORT must be/);
  assert.equal(parse([], { HOPLINE_RELAYS: '16' }).relays, 16);
  assert.throws(() => parse([], { HOPLINE_RELAYS: '17' }), /HOPLINE_RELAYS must be a whole number from 1 to 16/);
  assert.throws(() => parse([], { HOPLINE_RELAYS: '0' }), /from 1 to 16/);
});

test('accounts for agents require the cluster’s own NATS server', () => {
  assert.equal(parse([], { HOPLINE_AGENT_ACCOUNTS: 'true' }).agentAccounts, true);
  assert.equal(parse([], { HOPLINE_AGENT_ACCOUNTS: 'false', NATS_URL: 'nats://n' }).agentAccounts, false);
  assert.throws(() => parse([], { HOPLINE_AGENT_ACCOUNTS: 'yes' }), /HOPLINE_AGENT_ACCOUNTS must be true or false, not "yes"/);
  const both = { HOPLINE_AGENT_ACCOUNTS: 'true', NATS_URL: 'nats://n' };
  assert.throws(() => parse([], both), /the server of NATS_URL has accounts of its own/);
});

test('an unknown option is named in the error', () => {
  assert.throws(() => parse(['--prot', '1']), { name: 'LaunchError', message: /--prot.*see `npm start -- --help`$/s });
});

test('a misspelt setting is named, because no service would get it', () => {
  assert.throws(() => parse([], { HOPLINE_PROFIL: 'chat', HOPLINE_RELAY: '2', HOPLINE_LEASE_MS: '1500', HOPLINE_TOKEN: 't' }), {
    name: 'LaunchError',
    message:
      'HOPLINE_PROFIL is not a setting of Hopline; did you mean HOPLINE_PROFILE?; HOPLINE_RELAY is not a setting of Hopline; did you mean HOPLINE_RELAYS? (all settings: docs/reference/settings.md)',
  });
});

test('an option that npm consumed is refused, and the error shows the command that works', () => {
  for (const [name, value, option] of [
    ['npm_config_port', '18100', '--port 18100'],
    ['npm_config_port', 'true', '--port 8001'],
    ['npm_config_demo', '', '--no-demo'],
    ['npm_config_agents', 'mine.json', '--agents mine.json'],
    ['npm_config_origin', 'http://localhost:3000', '--origin http://localhost:3000'],
  ] as const)
    assert.throws(() => parse([], { [name]: value }), {
      name: 'LaunchError',
      message: `npm took ${option} for itself; put options after \`--\`: npm start -- ${option}`,
    });
});

test('--origin adds origins to the setting, in the form that browsers send', () => {
  const { origins } = parse(['--origin', 'http://localhost:5173/', '--origin', 'https://App.example']);
  assert.deepEqual(origins, ['http://localhost:5173', 'https://app.example']);
  assert.deepEqual(corsSetting({ origins }, { HOPLINE_CORS_ORIGINS: 'https://app.example,http://a:1' }), {
    HOPLINE_CORS_ORIGINS: 'https://app.example,http://a:1,http://localhost:5173',
  });
  assert.deepEqual(corsSetting({ origins: ['http://a:1'] }, { HOPLINE_CORS_ORIGINS: '' }), {
    HOPLINE_CORS_ORIGINS: 'http://a:1',
  });
  assert.deepEqual(corsSetting({ origins }, { HOPLINE_CORS_ORIGINS: '*' }), {}, 'every page already');
  assert.deepEqual(corsSetting({ origins: [] }, { HOPLINE_CORS_ORIGINS: 'http://a:1' }), {});
  for (const wrong of ['localhost:5173', 'http://a/page', 'file:///a', '*', ''])
    assert.throws(() => parse(['--origin', wrong]), {
      name: 'LaunchError',
      message: /^--origin must be the scheme, host and port/,
    });
});

test('TLS is refused, because no process of the local cluster would ever become ready', () => {
  for (const name of ['HOPLINE_TLS_CERT_FILE', 'HOPLINE_TLS_KEY_FILE', 'HOPLINE_TLS_CLIENT_CA_FILE'])
    assert.throws(() => parse([], { [name]: 'cert.pem' }), {
      name: 'LaunchError',
      message: `${name}: the local cluster serves plain HTTP; unset this setting and terminate TLS in a proxy`,
    });
  assert.equal(parse([], { HOPLINE_TLS_CERT_FILE: '' }).port, 8000);
});

test('HOPLINE_HOST is the address of the public endpoint', () => {
  assert.equal(parse([], { HOPLINE_HOST: '0.0.0.0' }).host, '0.0.0.0');
});

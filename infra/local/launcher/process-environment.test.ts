import assert from 'node:assert/strict';
import { test } from 'node:test';
import { absolutePaths, natsEnvironment, serviceEnvironment } from './process-environment.ts';

const SECRETS = {
  OPENAI_API_KEY: 'canary-openai',
  ARGO_TOKEN: 'canary-argo',
  ORG: 'canary-org',
  MODEL_KEY: 'canary-model-key',
  MINE: 'canary-mine',
  AWS_SECRET_ACCESS_KEY: 'canary-aws',
  GITHUB_TOKEN: 'canary-github',
  HTTPS_PROXY: 'http://user:canary-proxy@proxy',
  NATS_TOKEN: 'canary-nats',
  HOPLINE_SECRETS_KEY: 'canary-key',
};
const ENVIRONMENT = {
  PATH: '/bin',
  HOME: '/home',
  LC_ALL: 'C',
  TZ: 'UTC',
  OTEL_SERVICE_NAME: 'x',
  HOPLINE_LOG_LEVEL: 'warn',
  ...SECRETS,
};

test('settings that are paths are relative to the folder of the user', () => {
  const settings = {
    HOPLINE_AUTH_API_KEYS_FILE: 'keys.json',
    NATS_CREDS_FILE: '../nats.creds',
    HOPLINE_PROFILE_MODULE: './profile.ts',
    HOPLINE_TLS_CERT_FILE: '/etc/tls/cert.pem',
    HOPLINE_CARD_KEY_FILE: '',
    SSL_CERT_FILE: 'ca.pem',
    HOPLINE_PROFILE: 'aion',
  };
  assert.deepEqual(absolutePaths(settings, '/home/ann'), {
    HOPLINE_AUTH_API_KEYS_FILE: '/home/ann/keys.json',
    NATS_CREDS_FILE: '/home/nats.creds',
    HOPLINE_PROFILE_MODULE: '/home/ann/profile.ts',
    HOPLINE_TLS_CERT_FILE: '/etc/tls/cert.pem',
  });
});

/** The names of the secrets that a process gets. */
const secretsOf = (environment: NodeJS.ProcessEnv) =>
  Object.keys(environment)
    .filter(name => name in SECRETS)
    .sort();
const agent = (entry: object) =>
  secretsOf(serviceEnvironment('sub-agent', ENVIRONMENT, { name: 'a', adapter: 'module', ...entry }));

test('every service gets the variables of the system and of OpenTelemetry, and its own settings', () => {
  for (const service of ['ingress', 'supervisor', 'sub-agent', 'relay', 'notifier']) {
    const { PATH, HOME, LC_ALL, TZ, OTEL_SERVICE_NAME, HOPLINE_LOG_LEVEL } = serviceEnvironment(service, ENVIRONMENT);
    assert.deepEqual([PATH, HOME, LC_ALL, TZ, OTEL_SERVICE_NAME, HOPLINE_LOG_LEVEL], ['/bin', '/home', 'C', 'UTC', 'x', 'warn']);
  }
});

test('a service gets the secrets of its settings and no others', () => {
  const of = (service: string) => secretsOf(serviceEnvironment(service, ENVIRONMENT));
  assert.deepEqual(of('relay'), ['NATS_TOKEN']);
  assert.deepEqual(of('supervisor'), ['HTTPS_PROXY', 'NATS_TOKEN']);
  for (const service of ['ingress', 'notifier'])
    assert.deepEqual(of(service), ['HOPLINE_SECRETS_KEY', 'HTTPS_PROXY', 'NATS_TOKEN'], service);
  assert.deepEqual(secretsOf(natsEnvironment(ENVIRONMENT)), []);
});

test('a supervisor gets the key of a model server when a model plans', () => {
  const of = (planner: string) => secretsOf(serviceEnvironment('supervisor', { ...ENVIRONMENT, HOPLINE_PLANNER: planner }));
  assert.deepEqual(of('skills'), ['HTTPS_PROXY', 'NATS_TOKEN']);
  assert.deepEqual(of('model'), ['HTTPS_PROXY', 'NATS_TOKEN', 'OPENAI_API_KEY']);
});

test('an agent gets the variables that its own entry names', () => {
  const always = ['HTTPS_PROXY', 'NATS_TOKEN'];
  const gets = (entry: object, ...names: string[]) =>
    assert.deepEqual(agent(entry), [...always, ...names].sort(), JSON.stringify(entry));
  gets({});
  gets({ env: ['MINE'] }, 'MINE');
  gets({ env: ['MINE', 'not a name', 7] }, 'MINE');
  gets({ adapter: 'a2a', auth: { bearerEnv: 'ARGO_TOKEN' }, headersEnv: { 'x-org': 'ORG' } }, 'ARGO_TOKEN', 'ORG');
  gets({ adapter: 'a2a', auth: { apiKeyEnv: 'ARGO_TOKEN', header: 'x-key' } }, 'ARGO_TOKEN');
  gets({ adapter: 'model', apiKeyEnv: 'MODEL_KEY' }, 'MODEL_KEY', 'OPENAI_API_KEY');
  gets({ adapter: 'model', mcp: [{ command: 'x', env: { A: 'MINE' } }] }, 'OPENAI_API_KEY');
  gets({ adapter: 'mcp', command: 'x', env: { MINE: 'GITHUB_TOKEN' } });
  gets({ description: 'MINE', skills: [{ tags: ['GITHUB_TOKEN'], env: 'x' }] });
});

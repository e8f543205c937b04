import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { passwordVariable, type ServerUser, serverUsers } from '../../packages/log-jetstream/src/server-configuration.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
type Service = {
  image: string;
  command?: string[] | string;
  environment?: Record<string, string>;
  ports?: string[];
  profiles?: string[];
};
const { services } = parse(readFileSync(`${ROOT}/infra/compose/compose.yaml`, 'utf8'), { merge: true }) as {
  services: Record<string, Service>;
};
const variables = JSON.parse(readFileSync(`${ROOT}/infra/local/launcher/service-variables.json`, 'utf8')) as Record<
  string,
  string[]
>;
/** The users in infra/compose/nats.conf. */
const USERS = serverUsers(['guide']);

test('compose: every service of Hopline has only known settings, and its own NATS user', () => {
  const roles = Object.values(services).filter(({ command }) => Array.isArray(command) && command[0]! in variables);
  assert.deepEqual(new Set(roles.map(({ command }) => command![0])), new Set(Object.keys(variables)));
  for (const { command, environment = {} } of roles) {
    for (const name of Object.keys(environment)) {
      if (!name.startsWith('OTEL_')) assert.ok(variables[command![0]!]!.includes(name), `${command![0]} does not know ${name}`);
    }
    if (command![0] === 'console') assert.ok(!('NATS_URL' in environment) && !('NATS_USER' in environment));
    else assert.ok(USERS.some(user => user === environment.NATS_USER));
  }
});

test('compose: each NATS user has its own password, without a default, and only NATS has the passwords of others', () => {
  const servers = Object.values(services).filter(({ image }) => image.startsWith('nats:'));
  assert.equal(servers.length, 3);
  for (const { environment = {} } of servers) {
    const { NATS_SYNC_INTERVAL: _, ...passwords } = environment;
    assert.deepEqual(Object.keys(passwords).sort(), USERS.map(passwordVariable).sort());
    // `:?` stops Compose if the variable is missing or empty.
    for (const [name, value] of Object.entries(passwords)) assert.match(value, new RegExp(`^\\$\\{${name}:\\?[^}]+\\}$`));
  }
  for (const [name, { image, environment = {} }] of Object.entries(services)) {
    const found = Object.entries(environment).filter(([variable]) => /PASSWORD/.test(variable));
    const user = environment.NATS_USER as ServerUser | undefined;
    const own = user === undefined ? [] : [['NATS_PASSWORD', `\${${passwordVariable(user)}}`]];
    if (!image.startsWith('nats:')) assert.deepEqual(found, own, name);
  }
});

test('compose: the script writes a different password for each user', () => {
  const script = `${ROOT}/infra/compose/passwords.sh`;
  const passwordsOf = (...agents: string[]) => {
    const { stdout, status } = spawnSync('sh', [script, ...agents], { encoding: 'utf8' });
    assert.equal(status, 0);
    return new Map(stdout.split('\n').flatMap(line => (line === '' ? [] : [line.split('=') as [string, string]])));
  };
  const [one, other] = [passwordsOf(), passwordsOf()];
  assert.deepEqual([...one.keys()].sort(), USERS.map(passwordVariable).sort());
  const all = [...one.values(), ...other.values()];
  assert.equal(new Set(all).size, 2 * USERS.length);
  // nats-server reads a value that begins with a digit as a number.
  for (const password of all) assert.match(password, /^[a-z][\da-f]{48}$/);
  assert.ok(passwordsOf('guide', 'web-search').has(passwordVariable('agent.web-search')));
});

test('compose: images match the chart or have a fixed tag, and ports are published only on this machine', () => {
  const { version } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8'));
  const pins = JSON.parse(readFileSync(`${ROOT}/infra/local/bootstrap/pins.json`, 'utf8'));
  assert.equal(pins.natsServer.image, `nats:${pins.natsServer.goVersion}`, 'npm start takes its image where the chart does');
  for (const [name, { image, ports = [] }] of Object.entries(services)) {
    assert.match(image, /:(\$\{\w+:-)?v?\d+\.\d+\.\d+\}?(@sha256:[0-9a-f]{64})?$/, name);
    if (image.startsWith('hopline:')) assert.ok(image.includes(`:-${version}}`), image);
    if (image.startsWith('nats:')) assert.ok(image.includes(`:-${pins.natsServer.goVersion}}`), image);
    for (const port of ports) assert.match(port, /^127\.0\.0\.1:/, name);
  }
});

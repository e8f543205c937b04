import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { SERVICE_USERS } from '../../packages/log-jetstream/src/users.ts';

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

test('compose: every service of Hopline has only known settings, and its own NATS user', () => {
  const roles = Object.values(services).filter(({ command }) => Array.isArray(command) && command[0]! in variables);
  assert.deepEqual(new Set(roles.map(({ command }) => command![0])), new Set(Object.keys(variables)));
  for (const { command, environment = {} } of roles) {
    for (const name of Object.keys(environment)) {
      if (!name.startsWith('OTEL_')) assert.ok(variables[command![0]!]!.includes(name), `${command![0]} does not know ${name}`);
    }
    if (command![0] === 'console') assert.ok(!('NATS_URL' in environment) && !('NATS_USER' in environment));
    else assert.ok(environment.NATS_USER === 'agent' || SERVICE_USERS.some(user => user === environment.NATS_USER));
  }
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

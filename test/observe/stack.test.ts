import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort, OBSERVE_FILE, observedAt } from '@hopline/local-cluster';
import { until } from '../kit/until.ts';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';

/** `npm run observe` alongside a real nats-server. Fakes replace its programs. */

const MAIN = fileURLToPath(new URL('../../infra/observe/main.ts', import.meta.url));

/** Creates the folder of a cluster, and a PATH that has only these programs. */
function folders(t: TestContext, programs: readonly string[]): { home: string; path: string } {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-stack-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [home, path] = [join(folder, 'home'), join(folder, 'bin')];
  for (const name of [home, path]) mkdirSync(name);
  for (const name of programs) {
    writeFileSync(join(path, name), `#!${process.execPath}\nsetInterval(() => {}, 1_000);\n`);
    chmodSync(join(path, name), 0o755);
  }
  return { home, path };
}

function start(t: TestContext, { home, path }: { home: string; path: string }, args: readonly string[] = []) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: path, HOPLINE_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  // Not `exit`, because output may still arrive after it.
  const ended = once(child, 'close').then(([code]) => code as number | null);
  t.after(() => void child.kill('SIGKILL'));
  return { child, ended, output: () => output };
}

function writeRun(home: string, instances: Record<string, string>, nats: NatsServer, monitorPort: number): void {
  const processes = Object.entries(instances).map(([instance, url]) => ({
    service: instance.replace(/-\d+$/, ''),
    instance,
    url,
    pid: 1,
    restarts: 0,
  }));
  const natsMonitor = `http://127.0.0.1:${monitorPort}`;
  writeFileSync(
    join(home, 'run.json'),
    JSON.stringify({ url: 'http://127.0.0.1:8000/', nats: nats.url, natsMonitor, logs: join(home, 'logs'), processes }),
  );
}

async function monitored(t: TestContext): Promise<{ nats: NatsServer; monitorPort: number }> {
  const monitorPort = await freePort();
  const nats = await startNats({ config: `http: "127.0.0.1:${monitorPort}"` });
  t.after(() => nats.stop());
  return { nats, monitorPort };
}

test('without programs or without a cluster, observe names what is missing and exits', async t => {
  const none = start(t, folders(t, []));
  assert.equal(await none.ended, 1);
  assert.match(none.output(), /^hopline: nothing to start; install one of these and run the command again:\n/);
  for (const name of ['prometheus', 'jaeger', 'grafana']) assert.match(none.output(), new RegExp(`${name} is not on PATH: `));
  const alone = start(t, folders(t, ['jaeger']));
  assert.equal(await alone.ended, 1);
  assert.match(alone.output(), /^hopline: no local cluster is running .*run npm start/);
});

test('observe scrapes the processes and the NATS server of a cluster, even after the cluster has restarted', async t => {
  const place = folders(t, ['prometheus', 'jaeger']);
  const { home } = place;
  const first = await monitored(t);
  writeRun(home, { 'ingress-1': 'http://127.0.0.1:8000', 'nats-1': first.nats.url }, first.nats, first.monitorPort);
  const { child, ended, output } = start(t, place);
  await until(() => (output().includes('logs        ') ? true : undefined));
  assert.match(output(), /^grafana is not on PATH: /m);
  assert.match(output(), /^prometheus {2}http:\/\/127\.0\.0\.1:9090$/m);
  assert.match(output(), /^jaeger {6}http:\/\/127\.0\.0\.1:16686$/m);
  assert.match(output(), /OTEL_EXPORTER_OTLP_ENDPOINT=http:\/\/127\.0\.0\.1:4318 npm start$/m);
  const state = join(home, 'observe');
  const targets = () => JSON.parse(readFileSync(join(state, 'targets.json'), 'utf8')) as { targets: string[] }[];
  assert.deepEqual(
    targets().flatMap(group => group.targets),
    ['127.0.0.1:8000'],
  );
  assert.ok(existsSync(join(state, 'jaeger.yaml')) && existsSync(join(state, 'collector.yaml')));
  const config = readFileSync(join(state, 'prometheus.yaml'), 'utf8');
  const exporter = /job_name: nats\s+static_configs:\s+- targets: \["([^"]+)"\]/.exec(config)![1];
  const natsName = async () => {
    const text = await fetch(`http://${exporter}/metrics`).then(response => response.text());
    return /gnatsd_varz_connections\{server_name="([^"]+)"/.exec(text)?.[1];
  };
  const before = await until(natsName);
  const second = await monitored(t);
  writeRun(home, { 'ingress-1': 'http://127.0.0.1:8001' }, second.nats, second.monitorPort);
  await until(() => (targets()[0]?.targets[0] === '127.0.0.1:8001' ? true : undefined));
  assert.notEqual(await until(natsName), before);
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
});

test('every port of observe is an option; the console finds the addresses while observe runs', async t => {
  const place = folders(t, ['prometheus', 'jaeger']);
  const { nats, monitorPort } = await monitored(t);
  writeRun(place.home, { 'ingress-1': 'http://127.0.0.1:8000' }, nats, monitorPort);
  const ports = { prometheus: await freePort(), jaeger: await freePort(), grafana: await freePort(), otlp: await freePort() };
  const options = Object.entries(ports).flatMap(([name, port]) => [`--${name}`, `${port}`]);
  const { child, ended, output } = start(t, place, options);
  await until(() => (output().includes('logs        ') ? true : undefined));
  const address = (port: number) => `127.0.0.1:${port}`;
  assert.ok(output().includes(`OTEL_EXPORTER_OTLP_ENDPOINT=http://${address(ports.otlp)} npm start`), output());
  const config = (name: string) => readFileSync(join(place.home, 'observe', name), 'utf8');
  assert.ok(config('jaeger.yaml').includes(`http: { endpoint: "${address(ports.jaeger)}" }`));
  assert.ok(config('collector.yaml').includes(`http: { endpoint: "${address(ports.otlp)}" }`));
  const inner = [
    ...['jaeger.yaml', 'collector.yaml']
      .map(config)
      .join('')
      .matchAll(/grpc: \{ endpoint: "([^"]+)"/g),
  ];
  assert.equal(new Set(inner.map(([, endpoint]) => endpoint)).size, 2, 'each has a port of its own');
  assert.deepEqual(await until(() => (existsSync(join(place.home, OBSERVE_FILE)) ? observedAt(place.home) : undefined)), {
    prometheus: `http://${address(ports.prometheus)}`,
    jaeger: `http://${address(ports.jaeger)}`,
  });
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  assert.equal(existsSync(join(place.home, OBSERVE_FILE)), false);
  const wrong = start(t, place, ['--jaeger', '0']);
  assert.equal(await wrong.ended, 1);
  assert.equal(wrong.output(), 'hopline: --jaeger must be a port from 1 to 65535, not 0\n');
});

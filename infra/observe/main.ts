import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort, OBSERVE_FILE, type ObserveFile, runningCluster } from '@hopline/local-cluster';
import { natsMetrics } from './nats-metrics.ts';
import { findPrograms, missingLines } from './programs.ts';
import { targetsOf, writeTargets } from './scrape-targets.ts';
import { addressOf, PORTS, type Ports, prepareStack, type StartedProgram } from './stack.ts';

/** `npm run observe`: runs Prometheus, Jaeger and Grafana alongside `npm start`, if this machine has the programs. */

const TARGETS_MS = 2_000;

const USAGE = `npm run observe -- [--prometheus PORT] [--jaeger PORT] [--grafana PORT] [--otlp PORT]

Runs Prometheus, Jaeger and Grafana beside npm start. The defaults are ${Object.entries(PORTS)
  .map(([name, port]) => `${name} ${port}`)
  .join(', ')}; otlp takes spans over HTTP.`;

/** Throws for an unknown option, and for a value that is not a port. */
function portsOf(args: readonly string[]): Ports | 'help' {
  const names = Object.keys(PORTS) as (keyof Ports)[];
  const options = Object.fromEntries(names.map(name => [name, { type: 'string' as const }]));
  const { values } = parseArgs({ args: [...args], options: { ...options, help: { type: 'boolean', short: 'h' } } });
  if (values.help === true) return 'help';
  const entries = names.map(name => {
    const value = (values as Record<string, string | undefined>)[name];
    if (value === undefined) return [name, PORTS[name]];
    const port = Number(value);
    if (!/^\d+$/.test(value) || port < 1 || port > 65_535)
      throw new Error(`--${name} must be a port from 1 to 65535, not ${value}`);
    return [name, port];
  });
  return Object.fromEntries(entries) as Ports;
}

async function main(): Promise<number> {
  const ports = portsOf(process.argv.slice(2));
  if (ports === 'help') {
    console.log(USAGE);
    return 0;
  }
  const found = findPrograms(process.env.PATH ?? '');
  const missing = missingLines(found);
  if (Object.keys(found).length === 0) {
    console.error(
      ['hopline: nothing to start; install one of these and run the command again:', ...missing.map(line => `  ${line}`)].join(
        '\n',
      ),
    );
    return 1;
  }
  const cluster = runningCluster(process.env);
  const state = join(dirname(cluster.logs), 'observe');
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const targets = join(state, 'targets.json');
  const refresh = () => writeTargets(targets, targetsOf(runningCluster(process.env)));
  refresh();
  const exporter = await listen(() => runningCluster(process.env).natsMonitor);
  const inner = { otlpGrpc: await freePort(), jaegerGrpc: await freePort(), spanMetrics: await freePort() };
  const programs = prepareStack(found, { state, natsMetrics: addressOf(exporter.port), ports, inner });
  for (const line of missing) console.log(line);
  const running = programs.map(program => start(program, state));
  const stop = () => {
    for (const { child } of running) child.kill();
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  for (const { name, url } of programs) console.log(`${name.padEnd(12)}${url}`);
  if (found.jaeger)
    console.log(`traces      start the cluster with OTEL_EXPORTER_OTLP_ENDPOINT=http://${addressOf(ports.otlp)} npm start`);
  console.log(`logs        ${state}`);
  const observed = join(cluster.home, OBSERVE_FILE);
  const urls = Object.fromEntries(programs.map(({ name, url }) => [name, url]));
  writeFileSync(observed, JSON.stringify({ pid: process.pid, ...urls } satisfies ObserveFile));
  // The cluster may stop and start again while this program runs.
  const timer = setInterval(() => {
    try {
      refresh();
    } catch {
      writeTargets(targets, []);
    }
  }, TARGETS_MS);
  const ends = await Promise.all(running.map(({ ended }) => ended));
  clearInterval(timer);
  exporter.close();
  rmSync(observed, { force: true });
  return Math.max(...ends);
}

function start({ name, command, env }: StartedProgram, state: string): { child: ChildProcess; ended: Promise<number> } {
  const log = openSync(join(state, `${name}.log`), 'a', 0o600);
  const [program, ...args] = command;
  const child = spawn(program!, args, { stdio: ['ignore', log, log], env: { ...process.env, ...env } });
  const ended = once(child, 'exit').then(([code, signal]) => {
    if (signal !== null || code === 0) return 0;
    console.error(`${name} ended with code ${code}: see ${join(state, `${name}.log`)}`);
    return 1;
  });
  return { child, ended };
}

/** Serves the metrics of NATS for Prometheus. A restarted cluster has another monitoring port. */
async function listen(monitorOf: () => string | undefined): Promise<{ port: number; close(): void }> {
  const read = async () => {
    const url = monitorOf();
    if (url === undefined) throw new Error('NATS has no monitoring port');
    return natsMetrics(url);
  };
  const server = createServer((_request, response) => {
    read().then(
      text => response.setHeader('content-type', 'text/plain; version=0.0.4').end(text),
      error => response.writeHead(503).end(`${(error as Error).message}\n`),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

process.exitCode = await main().catch(error => {
  console.error(`hopline: ${(error as Error).message}`);
  return 1;
});

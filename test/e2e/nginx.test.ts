import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { freePort } from '@hopline/local-cluster';
import { until } from '../kit/until.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { shapeOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { assertWhole, HalvedAnswers } from '../support/cluster/halved-answers.ts';

/** A real nginx before two replicas, with its defaults: it buffers responses, and speaks HTTP/1.1 and gRPC to them. */

/** Not `NGINX`: nginx itself reads that variable. */
const NGINX = process.env.NGINX_PROGRAM ?? 'nginx';
const isMissing = spawnSync(NGINX, ['-v']).error !== undefined;
const skip = isMissing && 'no nginx on PATH (Debian: apt install nginx-light; or set NGINX_PROGRAM)';

/** Much shorter than nginx waits, as 15 s are shorter than its default of 60 s. */
const HEARTBEAT_MS = 1_000;
const READ_TIMEOUT_S = 10;
/** Longer than nginx waits. */
const SILENCE_MS = 14_000;

type Nginx = { url: string; grpcUrl: string; child: ChildProcess; log: () => string };

async function startNginx(folder: string, { ingresses }: Cluster): Promise<Nginx> {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const servers = (ports: unknown[]) => ports.map(one => `server 127.0.0.1:${one};`).join(' ');
  const http = servers(ingresses.map(one => one.port));
  const grpc = servers(ingresses.map(one => one.spec.env.HOPLINE_GRPC_PORT));
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${folder}/${name};`);
  const config = join(folder, 'nginx.conf');
  writeFileSync(
    config,
    `worker_processes 1; daemon off; pid ${folder}/nginx.pid; worker_shutdown_timeout 1s; error_log ${folder}/error.log;
    events { worker_connections 256; }
    http {
      access_log ${folder}/access.log; ${temporary.join(' ')}
      upstream ingress { ${http} }
      upstream calls { ${grpc} }
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; grpc_set_header Host $host;
      proxy_read_timeout ${READ_TIMEOUT_S}s; grpc_read_timeout ${READ_TIMEOUT_S}s;
      server { listen 127.0.0.1:${port}; location / { proxy_pass http://ingress; } }
      server { listen 127.0.0.1:${grpcPort} http2; location / { grpc_pass grpc://calls; } }
    }`,
  );
  const child = spawn(NGINX, ['-p', folder, '-c', config, '-e', join(folder, 'error.log')], { stdio: 'ignore' });
  const accepts = () =>
    new Promise<boolean>(resolve => {
      const socket = connect(grpcPort, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  await until(accepts);
  const log = () => readFileSync(join(folder, 'error.log'), 'utf8');
  return { url: `http://127.0.0.1:${port}`, grpcUrl: `127.0.0.1:${grpcPort}`, child, log };
}

describe('through a real nginx', { skip }, () => {
  const answers = new HalvedAnswers(SILENCE_MS);
  let agent: RemoteAgent;
  let cluster: Cluster;
  let nginx: Nginx;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hopline-nginx-'));
    agent = await startRemoteAgent({ dialect: '1.0', script: answers.script.bind(answers) });
    const agents = [{ name: 'counter', adapter: 'a2a', url: agent.url }];
    const env = { HOPLINE_SSE_HEARTBEAT_MS: `${HEARTBEAT_MS}` };
    cluster = await Cluster.start({ ingresses: 2, grpc: true, agents, env });
    nginx = await startNginx(folder, cluster);
  });

  after(async () => {
    if (nginx !== undefined) {
      nginx.child.kill('SIGTERM');
      await once(nginx.child, 'exit');
    }
    await cluster?.[Symbol.asyncDispose]();
    await agent?.close();
    rmSync(folder, { recursive: true });
  });

  const read = (text: string, act = () => {}) => answers.read(nginx.url, { text }, act, nginx.log);

  test('text arrives while the agent writes, although nginx buffers responses', { timeout: 120_000 }, async () => {
    answers.close();
    // Buffered, the first half would arrive only with the second one.
    assertWhole(await read('count', () => answers.open()));
  });

  test('heartbeats keep a silent stream open for longer than nginx waits', { timeout: 90_000 }, async () => {
    assertWhole(await read('silent'));
  });

  test('a stream cut by a reload of nginx or the death of its replica is resumed through nginx without a gap [S0-1]', {
    timeout: 120_000,
  }, async () => {
    answers.close();
    const cut = await read('count', () => nginx.child.kill('SIGHUP'));
    assert.notEqual(shapeOf(cut.at(-1)!), 'status:completed');
    answers.open();
    assertWhole(await answers.resumed(nginx.url, cut));
    await answers.assertReplicaDies(nginx.url, cluster.ingresses, nginx.log);
  });

  test('a gRPC stream passes, with its metadata, and resumes', { timeout: 120_000 }, () => answers.assertGrpc(nginx.grpcUrl));
});

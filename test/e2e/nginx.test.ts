import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { StreamResponse } from '@hopline/a2a';
import { GrpcClient } from '@hopline/a2a-grpc/test-client';
import { freePort } from '@hopline/local-cluster';
import { until } from '../kit/until.ts';
import { type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { type Frame, frames, shapeOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** A real nginx before two replicas, with its defaults: it buffers responses, and speaks HTTP/1.1 and gRPC to them. */

/** Not `NGINX`: nginx itself reads that variable. */
const NGINX = process.env.NGINX_PROGRAM ?? 'nginx';
const isMissing = spawnSync(NGINX, ['-v']).error !== undefined;
const skip = isMissing && 'no nginx on PATH (Debian: apt install nginx-light; or set NGINX_PROGRAM)';

const WORDS = Array.from({ length: 40 }, (_, index) => `${index} Grüße 👩‍🚀 `);
const TEXT = WORDS.join('');
const HALF = 20;
/** Much shorter than nginx waits, as 15 s are shorter than its default of 60 s. */
const HEARTBEAT_MS = 1_000;
const READ_TIMEOUT_S = 10;
/** Longer than nginx waits. */
const SILENCE_MS = 14_000;

/** The second half follows when the test opens the gate. */
let gate = Promise.withResolvers<void>();

async function* script({ text }: { text: string }): AsyncGenerator<Step> {
  for (const word of WORDS.slice(0, HALF)) yield { token: word };
  if (text === 'silent') yield { pause: SILENCE_MS };
  else await gate.promise;
  for (const word of WORDS.slice(HALF)) yield { token: word };
  yield { complete: true };
}

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

const artifactsOf = (events: readonly StreamResponse[]) =>
  events.flatMap(event => ('artifactUpdate' in event ? [event.artifactUpdate.artifact] : []));

function textOf(events: readonly StreamResponse[]): string {
  const answers = artifactsOf(events).filter(({ name }) => name === 'streaming_result');
  return answers.flatMap(({ parts }) => parts.map(part => part.text)).join('');
}

describe('through a real nginx', { skip }, () => {
  let agent: RemoteAgent;
  let cluster: Cluster;
  let nginx: Nginx;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hopline-nginx-'));
    agent = await startRemoteAgent({ dialect: '1.0', script });
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

  /** Reads a stream until it ends or breaks. `act` is called once, when the first half has arrived. */
  async function read(request: Parameters<typeof frames>[1], act: () => void): Promise<Frame[]> {
    const list: Frame[] = [];
    let hasActed = false;
    try {
      for await (const frame of frames(nginx.url, request)) {
        list.push(frame);
        if (hasActed || textOf(list.map(({ event }) => event)) !== WORDS.slice(0, HALF).join('')) continue;
        hasActed = true;
        act();
      }
    } catch (thrown) {
      assert.ok(hasActed, `${thrown}; ${nginx.log()}`);
    }
    return list;
  }

  async function resumed(list: Frame[]): Promise<Frame[]> {
    const { id } = list[0]!.result as { id: string };
    const rest: Frame[] = [];
    const again = { method: 'tasks/resubscribe', params: { id }, lastEventId: list.at(-1)!.id };
    for await (const frame of frames(nginx.url, again)) rest.push(frame);
    return [...list, ...rest];
  }

  function assertWhole(list: readonly Frame[]): void {
    assert.equal(textOf(list.map(({ event }) => event)), TEXT);
    assert.equal(shapeOf(list.at(-1)!), 'status:completed');
    const ids = list.map(({ id }) => id);
    assert.deepEqual(ids, [...new Set(ids)]);
  }

  test('text arrives while the agent talks, although nginx buffers responses', { timeout: 120_000 }, async () => {
    gate = Promise.withResolvers();
    // Buffered, the first half would arrive only with the second one.
    assertWhole(await read({ text: 'count' }, () => gate.resolve()));
  });

  test('heartbeats keep a silent stream open for longer than nginx waits', { timeout: 90_000 }, async () => {
    assertWhole(await read({ text: 'silent' }, () => {}));
  });

  test('a stream that a reload of nginx or the death of its replica cuts is resumed through nginx, without a gap [S0-1]', {
    timeout: 120_000,
  }, async () => {
    gate = Promise.withResolvers();
    const cut = await read({ text: 'count' }, () => nginx.child.kill('SIGHUP'));
    assert.notEqual(shapeOf(cut.at(-1)!), 'status:completed');
    gate.resolve();
    assertWhole(await resumed(cut));

    gate = Promise.withResolvers();
    // nginx sends the two streams to different replicas, so one of them is cut.
    const kill = async () => {
      await cluster.ingresses[0]!.kill();
      gate.resolve();
    };
    let killed: Promise<void> | undefined;
    let talking = 0;
    const onHalf = () => {
      talking += 1;
      if (talking === 2) killed = kill();
    };
    const streams = await Promise.all([read({ text: 'count' }, onHalf), read({ text: 'count' }, onHalf)]);
    await killed;
    await cluster.ingresses[0]!.start();
    const broken = streams.filter(list => shapeOf(list.at(-1)!) !== 'status:completed');
    assert.ok(broken.length > 0, 'nginx sent both streams to the replica that lives');
    for (const list of streams) assertWhole(broken.includes(list) ? await resumed(list) : list);
  });

  test('a gRPC stream passes, with its metadata, and resumes', { timeout: 120_000 }, async () => {
    gate = Promise.withResolvers();
    const client = new GrpcClient(nginx.grpcUrl);
    try {
      const parts = [{ text: 'count' }];
      const sent = { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts } };
      const stream = client.stream('SendStreamingMessage', sent);
      const [first] = await stream.take(1);
      assert.match(String((await stream.headers).get('first-event-id')[0]), /^1\./);
      stream.call.cancel();
      const back = client.stream('SubscribeToTask', { id: first.task.id }, { metadata: { 'last-event-id': '1.0' } });
      gate.resolve();
      const events = [first, ...(await back.rest())];
      assert.equal(textOf(events), TEXT);
      assert.equal(String((await back.trailers).get('last-event-id')[0]).split('.')[0], String(events.length));
    } finally {
      client.close();
    }
  });
});

import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientOptions } from '@grpc/grpc-js';
import { type A2AServerOptions, createA2AServer } from '@hopline/a2a-server';
import { TinyRelay } from '@hopline/a2a-server/tiny-relay';
import { agentCard } from '@hopline/agent-card';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import type { HopMetrics, LogFields, Logger } from '@hopline/telemetry';
import { GrpcClient } from './grpc-client.test-kit.ts';
import { type A2AGrpcOptions, type GrpcServer, openGrpc } from './open-grpc.ts';

export type Rig = {
  address: string;
  port: number;
  log: MemoryLog;
  relay: TinyRelay;
  server: GrpcServer;
  lines: { fields: LogFields; message: string }[];
  /** Open streams and waiting sends. */
  open(): number;
  client(options?: ClientOptions, address?: string): GrpcClient;
  /** Another process on the same log. */
  another(): Promise<Rig>;
};

export const CARD = agentCard({
  name: 'test',
  description: 'test',
  version: '0',
  url: 'http://127.0.0.1/',
  skills: [],
  capabilities: {},
});

type RigOptions = Partial<A2AServerOptions> & { grpc?: Pick<A2AGrpcOptions, 'limits' | 'tls'> };

export async function openRig(t: TestContext, options: RigOptions = {}): Promise<Rig> {
  const log = createMemoryLog({ shards: 1 });
  const relay = new TinyRelay(log);
  const stop = new AbortController();
  const running = relay.run(stop.signal);
  t.after(async () => {
    relay.resume();
    stop.abort();
    await running;
  });
  return openProcess(t, log, relay, options);
}

async function openProcess(t: TestContext, log: MemoryLog, relay: TinyRelay, options: RigOptions): Promise<Rig> {
  const lines: Rig['lines'] = [];
  let open = 0;
  const instrument = (name: string) => ({ add: (n: number) => (open += name === 'openStreams' ? n : 0), recordMs: () => {} });
  const metrics = new Proxy({}, { get: (_target, name) => instrument(String(name)) }) as HopMetrics;
  const { grpc, ...own } = options;
  const server = createA2AServer({ log, role: 'supervisor', profile: 'caipe', logger: recordingLogger(lines), metrics, ...own });
  const grpcServer = openGrpc(server, { card: () => CARD, ...grpc });
  const port = await grpcServer.listen('127.0.0.1', 0);
  const address = `127.0.0.1:${port}`;
  t.after(async () => {
    await grpcServer.close();
    server.close();
  });
  const client = (more: ClientOptions = {}, to = address) => {
    const made = new GrpcClient(to, more);
    t.after(() => made.close());
    return made;
  };
  const another = () => openProcess(t, log.another(), relay, options);
  return { address, port, log, relay, server: grpcServer, lines, open: () => open, client, another };
}

function recordingLogger(lines: Rig['lines']): Logger {
  const record = (first: LogFields | string, message?: string) => {
    lines.push(typeof first === 'string' ? { fields: {}, message: first } : { fields: first, message: message ?? '' });
  };
  const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map(level => [level, record] as const);
  return { ...Object.fromEntries(levels), child: () => recordingLogger(lines) } as unknown as Logger;
}

export async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('did not happen in 10 s');
    await sleep(5);
  }
}

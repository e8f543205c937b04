import type { TestContext } from 'node:test';
import type { ClientOptions } from '@grpc/grpc-js';
import type { A2AServerOptions } from '@hopline/a2a-server';
import { openServer, type TestServer } from '@hopline/a2a-server/test-kit';
import { agentCard } from '@hopline/agent-card';
import { GrpcClient } from './grpc-client.test-kit.ts';
import { type A2AGrpcOptions, type GrpcServer, openGrpc } from './open-grpc.ts';

/** A server on gRPC. */
export type Rig = Omit<TestServer, 'server' | 'another'> & {
  address: string;
  port: number;
  server: GrpcServer;
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

type GrpcOptions = Pick<A2AGrpcOptions, 'limits' | 'tls'>;

export function openRig(
  t: TestContext,
  { grpc, ...options }: Partial<A2AServerOptions> & { grpc?: GrpcOptions } = {},
): Promise<Rig> {
  return listen(t, openServer(t, options), grpc);
}

async function listen(t: TestContext, { server, another, ...shown }: TestServer, grpc?: GrpcOptions): Promise<Rig> {
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
  return { ...shown, address, port, server: grpcServer, client, another: () => listen(t, another(), grpc) };
}

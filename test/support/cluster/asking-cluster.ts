import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { startRemoteAgent } from '../agents/remote-agent.ts';
import { Cluster } from './cluster.ts';

export type AskingCluster = AsyncDisposable & {
  cluster: Cluster;
  log: Log;
  nc: NatsConnection;
  /** Changes the limit of the stream itself, because the setting's minimum is 16 MiB. Resolves with a function that restores the limit. */
  limitBytes(stream: string, bytes: number): Promise<() => Promise<unknown>>;
};

/** Starts a cluster with one agent. It asks a question if a task begins with `question`, and otherwise answers with `answer`. */
export async function startAskingCluster(options: {
  question: string;
  answer: string;
  env: Record<string, string>;
}): Promise<AskingCluster> {
  const { question, answer, env } = options;
  const remote = await startRemoteAgent({
    dialect: '1.0',
    script: ({ text, turn }) =>
      text === question && turn === 1 ? [{ inputRequired: 'which one?' }] : [{ token: answer }, { complete: true }],
  });
  const agents = [{ name: 'writer', adapter: 'a2a', url: remote.url }];
  const cluster = await Cluster.start({ agents, profile: 'transparent', env });
  const log = await openJetStreamLog({ servers: cluster.nats.url, name: 'test' });
  const nc = await connect({ servers: cluster.nats.url });
  const { streams } = await jetstreamManager(nc);
  return {
    cluster,
    log,
    nc,
    limitBytes: async (stream, bytes) => {
      const { max_bytes } = (await streams.info(stream)).config;
      await streams.update(stream, { max_bytes: bytes });
      return () => streams.update(stream, { max_bytes });
    },
    [Symbol.asyncDispose]: async () => {
      await nc.close();
      await log.close();
      await cluster[Symbol.asyncDispose]();
      await remote.close();
    },
  };
}

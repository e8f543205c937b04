import { clientTaskId } from '@hopline/a2a';
import { openGrpc } from '@hopline/a2a-grpc';
import { openHttp } from '@hopline/a2a-http';
import { createA2AServer } from '@hopline/a2a-server';
import { type AgentInterface, agentCard, draftExtension, resumeExtension } from '@hopline/agent-card';
import { PublishedCard } from '@hopline/agent-card/signing';
import { createMemoryLog } from '@hopline/log/memory';
import { LINE_BYTES_MAX } from '@hopline/task-file';
import type { Logger } from '@hopline/telemetry';
import { FaultInjector, type Faults } from './faults.ts';
import { RecordedRelay, ROLE } from './recorded-relay.ts';
import { type MatchRule, type Recording, Recordings } from './recording.ts';

export type ReplayServerOptions = {
  recordings: readonly Recording[];
  match: MatchRule;
  /** Factor of the recorded speed. Infinite: without waiting. */
  pace: number;
  faults: Faults;
  /** Version of Hopline, on the card. */
  version: string;
  logger: Logger;
  /** Host names that requests may use. Without this check a page in any browser of the network could call the server by DNS rebinding. */
  hosts: NonNullable<Parameters<typeof openHttp>[1]['hosts']> & NonNullable<Parameters<typeof openGrpc>[1]['hosts']>;
};

export type ReplayServer = {
  /** Resolves with the address of HTTP and the port of gRPC; port 0 chooses a free one. */
  listen(host: string, port: number, grpcPort: number): Promise<{ url: string; grpcPort: number }>;
  close(): Promise<void>;
};

/** Largest record: room for the largest record of a file with a client's message. */
const RECORD_BYTES_MAX = 2 * LINE_BYTES_MAX;

const EXTENSIONS = [resumeExtension, draftExtension];

/**
 * An A2A server that answers with recorded tasks, with every binding and dialect, resume, lists and cancel. It is the server of ingress with
 * a log in memory; recorded facts replace relay and agents. Nothing leaves the process.
 */
export async function createReplayServer(options: ReplayServerOptions): Promise<ReplayServer> {
  const { recordings, match, pace, faults, version, logger, hosts } = options;
  const log = createMemoryLog({ shards: 1, recordBytesMax: RECORD_BYTES_MAX });
  const relay = new RecordedRelay(log, new Recordings(recordings, match), pace, err => logger.error({ err }, 'recording failed'));
  for (const recording of recordings) await relay.store(recording);
  const injector = new FaultInjector(faults);
  const server = createA2AServer({
    log,
    role: ROLE,
    profile: 'caipe',
    logger,
    extensions: EXTENSIONS,
    intercept: request => injector.apply(request),
    recordedTaskIds: chosenIdsOf(recordings),
  });
  let interfaces: AgentInterface[] = [];
  const card = new PublishedCard(() =>
    agentCard({
      name: 'Hopline replay',
      description: `Answers with ${recordings.length} recorded ${recordings.length === 1 ? 'task' : 'tasks'}.`,
      version,
      url: http.url,
      skills: skillsOf(recordings),
      capabilities: { streaming: true, stateTransitionHistory: true, extensions: EXTENSIONS },
      moreInterfaces: interfaces,
    }),
  );
  const http = openHttp(server, { card, hosts });
  const grpc = openGrpc(server, { card: async () => (await card.current()).card, hosts });
  const stop = new AbortController();
  let running: Promise<void> | undefined;
  return {
    listen: async (host, port, grpcPort) => {
      const bound = await grpc.listen(host, grpcPort);
      interfaces = (['1.0', '0.3'] as const).map(protocolVersion => ({
        url: `127.0.0.1:${bound}`,
        protocolBinding: 'GRPC',
        protocolVersion,
      }));
      await http.listen(host, port);
      running = relay.run(stop.signal);
      return { url: http.url, grpcPort: bound };
    },
    close: async () => {
      stop.abort();
      await Promise.all([grpc.close(), http.close(), running]);
      await log.close();
    },
  };
}

/** Maps ids that clients chose to stored ids. If two callers chose the same id, the first recorded one wins. */
function chosenIdsOf(recordings: readonly Recording[]): Map<string, string> {
  const ids = new Map<string, string>();
  for (const { header } of recordings) {
    const chosen = clientTaskId(header.taskId);
    if (chosen !== header.taskId && !ids.has(chosen)) ids.set(chosen, header.taskId);
  }
  return ids;
}

/** The recorded questions are the examples of one skill. */
function skillsOf(recordings: readonly Recording[]) {
  const examples = [...new Set(recordings.map(({ question }) => question))].filter(question => question !== '').slice(0, 10);
  return [{ id: 'recorded', name: 'Recorded answers', description: 'Answers recorded questions', tags: ['replay'], examples }];
}

import { LogNames } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import type { Installation } from './installation.ts';
import { forwardPort } from './port-forward.ts';

/** The stream of queued work, as its administrator edits it. */
export type WorkStream = { bytes(): Promise<number>; bound(): Promise<number>; setBound(bytes: number): Promise<void> };

/** Connects as the administrator, through the API of the cluster. */
export async function openWorkStream(
  stack: AsyncDisposableStack,
  { release, namespace, authority }: Installation,
): Promise<WorkStream> {
  const password = await release.kubectl('get', 'secret/hopline-nats', '--output', 'jsonpath={.data.admin}');
  const port = await forwardPort(stack, { namespace, pod: 'hopline-nats-0', port: 4222 });
  const { cert, key } = authority.issue('services');
  const nc = await connect({
    servers: `tls://127.0.0.1:${port}`,
    ignoreClusterUpdates: true,
    user: 'admin',
    pass: Buffer.from(password, 'base64').toString(),
    tls: { ca: authority.cert, cert, key },
  });
  stack.defer(() => nc.close());
  const jsm = await jetstreamManager(nc);
  const { workStream } = new LogNames();
  return {
    bytes: async () => (await jsm.streams.info(workStream)).state.bytes,
    bound: async () => (await jsm.streams.info(workStream)).config.max_bytes,
    setBound: async bytes => void (await jsm.streams.update(workStream, { max_bytes: bytes })),
  };
}

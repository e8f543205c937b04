import type { TestContext } from 'node:test';
import type { Log } from '@hopline/log';
import { type JetStreamLogOptions, openJetStreamLog } from '@hopline/log-jetstream';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';

export type StartedLog = { server: NatsServer; jsm: JetStreamManager; open: (options?: object) => Promise<Log> };

/** A nats-server of its own and the logs that `open` opens on it, with `defaults`, until the test ends. */
export async function startedLog(t: TestContext, defaults: Partial<JetStreamLogOptions> = {}): Promise<StartedLog> {
  const server = await startNats();
  t.after(() => server.stop());
  const nc = await connect({ servers: server.url });
  t.after(() => nc.close());
  const open = async (options = {}) => {
    const log = await openJetStreamLog({ servers: server.url, name: 'test', ...defaults, ...options });
    t.after(() => log.close());
    return log;
  };
  return { server, jsm: await jetstreamManager(nc), open };
}

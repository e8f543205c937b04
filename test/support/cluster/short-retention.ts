import { FACTS_STREAM } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { nanos } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';

/** Sets the retention of facts in the stream itself, because the setting's minimum is ten minutes. */
export async function keepFactsFor(natsUrl: string, ageMs: number): Promise<void> {
  const nc = await connect({ servers: natsUrl });
  const jsm = await jetstreamManager(nc);
  await jsm.streams.update(FACTS_STREAM, { max_age: nanos(ageMs), duplicate_window: nanos(ageMs) });
  await nc.close();
}

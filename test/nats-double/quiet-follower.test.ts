import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIVE_PREFIX } from '@hopline/events';
import { factRecord } from '@hopline/log/test-kit';
import { FACTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import type { ToLeader } from './client-connection.ts';
import { REAL_CLOCK } from './clock.ts';
import { NatsDouble } from './nats-double.ts';
import { connectVirtually, listen, pathOf } from './virtual-network.ts';

const TAIL_CHECK_MS = 50;
const JOIN = `$JS.API.CONSUMER.CREATE.${FACTS_STREAM}.`;

test('a record that is stored between the last check of a quiet follower and its watch is found, though its live message is lost', {
  timeout: 120_000,
}, async t => {
  const double = new NatsDouble({ clock: REAL_CLOCK });
  let isStored = false;
  // The follower has checked its tail for the last time when it asks the server to watch.
  const toLeader: ToLeader = ({ subject }, pass) => {
    if (isStored || !subject.startsWith(JOIN)) return pass();
    isStored = true;
    void writer.facts.append(factRecord('t', 1, 0), { expected: 0, id: 't:w:1' }).then(() => pass());
  };
  const port = listen(double, { ...pathOf(REAL_CLOCK), toLeader });
  port.lose = ({ subject }) => subject.startsWith(`${LIVE_PREFIX}.`);
  const common = { name: 'log', connect: connectVirtually };
  const writer = await openJetStreamLog({ ...common, servers: listen(double, pathOf(REAL_CLOCK)).url });
  const log = await openJetStreamLog({ ...common, servers: port.url, follow: { tailCheckMs: TAIL_CHECK_MS } });
  const stop = new AbortController();
  t.after(async () => {
    stop.abort();
    await Promise.all([log.close(), writer.close()]);
    double.close();
    assert.deepEqual(double.unsupported, []);
  });
  const records = (await log.facts.follow('t', 0, stop.signal))[Symbol.asyncIterator]();
  assert.equal((await records.next()).value?.record.aggregate.generation, 1);
  assert.ok(isStored, 'the follower has not watched');
});

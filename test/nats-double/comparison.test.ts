import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from '@nats-io/transport-node';
import { startNats } from '../support/nats/nats-server.ts';
import { REAL_CLOCK } from './clock.ts';
import { compare } from './comparison.ts';
import { NatsDouble } from './nats-double.ts';
import { connectVirtually, listen, pathOf } from './virtual-network.ts';

/** Runs 201 to 203, two with consumers whose filter changes while they wait for acknowledgements, and one with a purge of one message. */
const RUNS = [
  { seed: 201, operations: 1_200 },
  { seed: 406, operations: 300 },
  { seed: 437, operations: 390 },
  { seed: 478, operations: 190 },
];

test('the double answers random operations as a real nats-server does', async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const double = new NatsDouble({ clock: REAL_CLOCK });
  t.after(() => double.close());
  const real = await connect({ servers: server.url });
  t.after(() => real.close());
  const virtual = await connectVirtually({ servers: listen(double, pathOf(REAL_CLOCK)).url });
  t.after(() => virtual.close());
  for (const run of RUNS) for await (const { difference } of compare(real, virtual, run)) assert.equal(difference, undefined);
  assert.deepEqual(double.unsupported, []);
});

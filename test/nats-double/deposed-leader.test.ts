import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Log } from '@hopline/log';
import { factRecord, workItem } from '@hopline/log/test-kit';
import { openJetStreamLog } from '@hopline/log-jetstream';
import type { ToLeader } from './client-connection.ts';
import { REAL_CLOCK } from './clock.ts';
import type { Views } from './json-api.ts';
import { NatsDouble } from './nats-double.ts';
import { connectVirtually, listen, pathOf } from './virtual-network.ts';

/** The followers have elected another leader by then. */
const SILENT_MS = 5_000;
/** Reads that the deposed leader answers before it notices. */
const STALE_READS = 3;

const READ = /^\$JS\.API\.(STREAM\.MSG\.GET\.|DIRECT\.GET\.|STREAM\.INFO\.A2A_WORK$)/;

/** A log of three replicas with one record of a task, and another log that reaches only a leader that was deposed then. */
async function open(t: TestContext) {
  const double = new NatsDouble({ clock: REAL_CLOCK, nodes: 3 });
  const state = { views: undefined as Views | undefined, staleReads: 0 };
  const toLeader: ToLeader = ({ subject }, pass) => {
    if (state.views !== undefined && READ.test(subject)) state.staleReads += 1;
    const { views } = state;
    // The answer to the request below is still stale.
    if (state.staleReads >= STALE_READS) state.views = undefined;
    pass(views);
  };
  const paths = [pathOf(REAL_CLOCK), { ...pathOf(REAL_CLOCK), toLeader }];
  const [writer, reader] = (await Promise.all(
    paths.map(path =>
      openJetStreamLog({ servers: listen(double, path).url, name: 'log', replicas: 3, connect: connectVirtually }),
    ),
  )) as [Log, Log];
  t.after(async () => {
    await Promise.all([writer.close(), reader.close()]);
    double.close();
    assert.deepEqual(double.unsupported, []);
  });
  const first = await writer.facts.append(factRecord('t', 1, 0), { expected: 0, id: 't:w:1' });
  const depose = () => {
    const silentSinceMs = REAL_CLOCK.nowMs() - SILENT_MS;
    state.views = new Map([...double.streams].map(([name, stream]) => [name, { ...stream.view(), silentSinceMs }]));
  };
  const append = () => writer.facts.append(factRecord('t', 2, first.seq), { expected: first.seq, id: 't:w:2' });
  return { writer, reader, state, depose, append };
}

test('the newest record of a task does not come from a deposed leader', { timeout: 120_000 }, async t => {
  const { reader, state, depose, append } = await open(t);
  depose();
  await append();
  assert.equal((await reader.facts.last('t'))?.record.aggregate.generation, 2);
  assert.equal(state.staleReads, STALE_READS);
});

test('the newest records of many tasks do not come from a deposed leader', { timeout: 120_000 }, async t => {
  const { reader, state, depose, append } = await open(t);
  depose();
  await append();
  assert.equal((await reader.facts.lastOfEach(['t'])).get('t')?.record.aggregate.generation, 2);
  assert.equal(state.staleReads, STALE_READS);
});

test('a record that a deposed leader lacks is not lost', { timeout: 120_000 }, async t => {
  const { reader, state, depose, append } = await open(t);
  depose();
  const { seq } = await append();
  assert.equal(await reader.facts.isLost({ seq, id: 't:w:2' }), false);
  assert.equal(state.staleReads, STALE_READS);
});

test('an item of work that a deposed leader lacks is not gone', { timeout: 120_000 }, async t => {
  const { writer, reader, state, depose } = await open(t);
  depose();
  await writer.work.request('agent.mine', workItem('t'), { id: 't:call' });
  assert.equal(await reader.work.hasItem('agent.mine', 't'), true);
  assert.equal(state.staleReads, STALE_READS);
});

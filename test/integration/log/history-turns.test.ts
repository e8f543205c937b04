import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FactRecord } from '@hopline/events';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { startNats } from '../../support/nats/nats-server.ts';

const RECORDS = 1_200;
const READERS = 20;
/** Twice the number of records that one reader gets in a turn of the event loop, because the next reader runs before this test counts. */
const RECORDS_PER_LOOP_MAX = 2 * 16;
const OWNER = { tenant: 'b', subject: 'bert' };

const record = (generation: number) =>
  ({
    v: 1,
    facts: [],
    aggregate: { taskId: 'long', contextId: 'c', generation },
    startSeq: 1,
    startStoredAt: 1,
  }) as unknown as FactRecord;

test('many readers of a long task leave the event loop to others after a few records', { timeout: 120_000 }, async t => {
  const server = await startNats();
  const log = await openJetStreamLog({ servers: server.url, name: 'history' });
  t.after(async () => {
    await log.close();
    await server.stop();
  });
  let expected = 0;
  for (let generation = 1; generation <= RECORDS; generation += 1)
    ({ seq: expected } = await log.facts.append(record(generation), { expected, id: `long:${generation}` }));

  let inThisLoop = 0;
  let most = 0;
  let isOver = false;
  const count = () => {
    most = Math.max(most, inThisLoop);
    inThisLoop = 0;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const read = async () => {
    const generations: number[] = [];
    for await (const { record: stored } of log.facts.read('long', 1, OWNER)) {
      inThisLoop += 1;
      generations.push(stored.aggregate.generation);
    }
    return generations;
  };
  const all = await Promise.all(Array.from({ length: READERS }, read));
  isOver = true;
  const whole = Array.from({ length: RECORDS }, (_, index) => index + 1);
  for (const generations of all) assert.deepEqual(generations, whole);
  assert.ok(most <= RECORDS_PER_LOOP_MAX, `${most} records in one turn of the event loop`);
});

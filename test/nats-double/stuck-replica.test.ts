import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogUnavailable } from '@hopline/log';
import { factRecord } from '@hopline/log/test-kit';
import { FACTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { REAL_CLOCK } from './clock.ts';
import type { MessageStore } from './message-store.ts';
import { NatsDouble } from './nats-double.ts';
import { connectVirtually, listen, pathOf } from './virtual-network.ts';

const GET = `$JS.API.DIRECT.GET.${FACTS_STREAM}`;
/** Far fewer than one every 10 ms. */
const REQUESTS_MAX = 60;

test('a read fails after some requests if only a replica that stays behind its leader answers', {
  timeout: 120_000,
}, async t => {
  let stuck: MessageStore | undefined;
  const double = new NatsDouble({
    clock: REAL_CLOCK,
    nodes: 3,
    replicaOf: ({ store, config }) => (config.name === FACTS_STREAM && stuck) || store,
  });
  let requests = 0;
  const toLeader = ({ subject }: { subject: string }, pass: () => void) => {
    if (subject === GET) requests += 1;
    pass();
  };
  const { url: servers } = listen(double, { ...pathOf(REAL_CLOCK), toLeader });
  const log = await openJetStreamLog({ servers, name: 'log', replicas: 3, connect: connectVirtually });
  t.after(async () => {
    await log.close();
    double.close();
  });
  const { seq } = await log.facts.append(factRecord('t', 1, 0), { expected: 0, id: 't:w:1' });
  stuck = double.streams.get(FACTS_STREAM)!.store.copy();
  await log.facts.append(factRecord('t', 2, seq), { expected: seq, id: 't:w:2' });
  await assert.rejects(log.facts.lastOfEach(['t']), LogUnavailable);
  assert.ok(requests > 1 && requests < REQUESTS_MAX, `${requests} requests`);
});

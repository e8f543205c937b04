import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FactRecord } from '@hopline/events';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const TAIL_CHECK_MS = 100;

function record(taskId: string): FactRecord {
  const aggregate = {
    taskId,
    contextId: 'c',
    state: 'TASK_STATE_WORKING',
    generation: 1,
    at: 1,
    role: 'supervisor',
    profile: 'caipe',
    turn: 1,
    messageIds: [],
    lanes: {},
    calls: {},
    producers: {},
    foldedSeq: 1,
  } as const;
  return {
    v: 1,
    facts: [],
    aggregate: structuredClone(aggregate) as unknown as FactRecord['aggregate'],
    startSeq: 0,
    startStoredAt: 1,
  };
}

test('reads on which a decision depends go to the leader; only a task’s follower asks any replica, and checks again', {
  timeout: 120_000,
}, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const log = await openJetStreamLog({ servers: nats.url, name: 'reads', follow: { tailCheckMs: TAIL_CHECK_MS } });
  t.after(() => log.close());
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  const direct: string[] = [];
  const requests = new Set<string>();
  nc.subscribe('$JS.API.>', {
    callback: (_error, { subject }) => {
      requests.add(subject.split('.').slice(2, 5).join('.'));
      if (subject.startsWith('$JS.API.DIRECT.')) direct.push(subject);
    },
  });
  await nc.flush();

  await log.facts.append(record('t'), { expected: 0, id: 't:1' });
  const entry = { taskId: 't', id: 'hook', url: 'https://example.org/', dialect: '1.0', after: 0 } as const;
  await log.pushConfigs.put('t.hook', entry);
  await log.facts.last('t');
  await log.pushConfigs.get('t.hook');
  await log.pushConfigs.under('t');
  await log.pushConfigs.revision();
  await log.pushProgress.extent();
  await log.inputs.extent();
  await log.facts.extent();
  await log.work.hasItem('supervisor', 't');
  await log.work.requireRoom('supervisor');
  for await (const change of log.pushConfigs.watch(AbortSignal.timeout(20_000))) if (change.type === 'ready') break;
  for await (const _record of log.facts.read('t', 1)) break;
  for await (const _input of log.inputs.read('t')) break;
  await nc.flush();
  assert.ok(requests.has('STREAM.MSG.GET'), [...requests].join(' '));
  // The log has one replica, which is the leader. With several, the leader names the newest record, and any replica may answer with those up to it.
  assert.deepEqual([...new Set(direct)], ['$JS.API.DIRECT.GET.A2A_LOG']);

  const stop = new AbortController();
  const followed = (await log.facts.follow('t', 0, stop.signal))[Symbol.asyncIterator]();
  await followed.next();
  const next = followed.next();
  await until(() => direct.length > 0);
  stop.abort();
  await next;
  assert.ok(
    direct.every(subject => subject.startsWith('$JS.API.DIRECT.GET.A2A_LOG')),
    direct.join(' '),
  );
});

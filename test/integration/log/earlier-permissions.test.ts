import assert from 'node:assert/strict';
import { test } from 'node:test';
import { factRecord } from '@hopline/log/test-kit';
import { authorization, openJetStreamLog, serverUsers } from '@hopline/log-jetstream';
import { connect } from '@nats-io/transport-node';
import { loginOf } from '../../support/cluster/cluster.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const DIRECT_GET = '"$JS.API.DIRECT.GET.A2A_LOG"';
const RECORDS = 5;

test('a service reads tasks even with the NATS permissions of a version without direct gets', {
  timeout: 120_000,
}, async t => {
  const users = new Map(serverUsers(['one']).map(user => [user, { text: user }]));
  const config = authorization(users);
  assert.ok(config.includes(DIRECT_GET), 'the test removes nothing');
  const nats = await startNats({ config: config.replaceAll(DIRECT_GET, '"unused"') });
  t.after(() => nats.stop());
  const open = (user: 'relay' | 'supervisor') => {
    const { NATS_USER, NATS_PASSWORD } = loginOf(user);
    return openJetStreamLog({ servers: nats.url, name: user, user, credentials: { user: NATS_USER, pass: NATS_PASSWORD } });
  };
  const relay = await open('relay');
  t.after(() => relay.close());
  const seqs: number[] = [];
  for (let n = 1; n <= RECORDS; n += 1) {
    const record = factRecord('task', n, n === 1 ? 0 : seqs[0]);
    seqs.push((await relay.facts.append(record, { expected: seqs.at(-1) ?? 0, id: `task:relay:${n}` })).seq);
  }
  const supervisor = await open('supervisor');
  t.after(() => supervisor.close());
  for (const read of ['first', 'second']) {
    const found: number[] = [];
    for await (const { seq } of supervisor.facts.read('task', 1)) found.push(seq);
    assert.deepEqual(found, seqs, read);
  }
});

test('an agent of a version that asks the JetStream API works with the permissions for such agents, and not without them', {
  timeout: 120_000,
}, async t => {
  const users = new Map(serverUsers(['one']).map(user => [user, { text: user }]));
  for (const earlierAgents of [true, false]) {
    const nats = await startNats({ config: authorization(users, { earlierAgents }) });
    t.after(() => nats.stop());
    const login = ({ NATS_USER: user, NATS_PASSWORD: pass }: ReturnType<typeof loginOf>) => ({ user, pass });
    const relay = await openJetStreamLog({
      servers: nats.url,
      name: 'relay',
      user: 'relay',
      credentials: login(loginOf('relay')),
    });
    t.after(() => relay.close());
    const agent = await connect({ servers: nats.url, ...login(loginOf('agent.one')), inboxPrefix: '_INBOX.hopline.agent.one' });
    t.after(() => agent.close());
    const filter = 'a2a.work.agent.one.*';
    const consumer = {
      stream_name: 'A2A_WORK',
      config: { durable_name: 'agent-one', filter_subject: filter, ack_policy: 'explicit' },
    };
    const requests: [call: string, request: object][] = [
      ['STREAM.INFO.A2A_RAW', {}],
      [`CONSUMER.CREATE.A2A_WORK.agent-one.${filter}`, consumer],
      ['CONSUMER.INFO.A2A_WORK.agent-one', {}],
      ['STREAM.MSG.GET.KV_hopline_requeues', { last_by_subj: '$KV.hopline_requeues.agent.one.t.1' }],
    ];
    for (const [call, request] of requests) {
      const answer = agent.request(`$JS.API.${call}`, JSON.stringify(request), { timeout: 10_000 });
      if (earlierAgents) assert.match((await answer).json<{ type: string }>().type, /^io\.nats\.jetstream\.api\./, call);
      else await assert.rejects(answer, /permission/i, call);
    }
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { factRecord } from '@hopline/log/test-kit';
import { authorization, openJetStreamLog, serverUsers } from '@hopline/log-jetstream';
import { loginOf } from '../../support/cluster/cluster.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const DIRECT_GET = '"$JS.API.DIRECT.GET.A2A_LOG"';
const RECORDS = 5;

test('a service reads tasks although the permissions of its NATS user are those of a version without direct gets', {
  timeout: 60_000,
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

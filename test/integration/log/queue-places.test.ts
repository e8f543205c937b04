import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Owner } from '@hopline/events';
import { workItem } from '@hopline/log/test-kit';
import { authorization, openJetStreamLog, serverUsers, userName } from '@hopline/log-jetstream';
import { until } from '../../kit/until.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const ROLE = 'agent.busy';
const OWNER: Owner = { tenant: 'first' };
const TIMEOUT = { timeout: 120_000 };

test('the number of items ahead of a waiting item is roughly known until a worker has it', TIMEOUT, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const log = await openJetStreamLog({ servers: nats.url, name: 'requester' });
  t.after(() => log.close());
  const request = (taskId: string, role: typeof ROLE | 'agent.other' = ROLE, owner?: Owner) =>
    log.work.request(role, { ...workItem(taskId), ...(owner && { owner }) }, { id: `${role}-${taskId}` });
  const ahead = (taskId: string, owner?: Owner) => log.work.ahead(ROLE, { taskId, ...(owner && { owner }) });
  await request('before-any-worker');
  assert.equal(await ahead('before-any-worker'), 0, 'no worker has opened the queue');
  assert.equal(await ahead('never-queued'), undefined);
  const ends: (() => void)[] = [];
  const stop = new AbortController();
  const taking = log.work.take(ROLE, { slots: 1, signal: stop.signal }, async () => new Promise(resolve => ends.push(resolve)));
  t.after(async () => {
    stop.abort();
    for (const end of ends) end();
    await taking;
  });
  await until(() => ends.length === 1);
  for (let n = 0; n < 20; n += 1) await Promise.all([request(`t-${n}`), request(`t-${n}`, 'agent.other')]);
  await request('of-a-tenant', ROLE, OWNER);
  // An answer may be a second old.
  await until(async () => (await ahead('t-19')) !== undefined);
  const places = await Promise.all(Array.from({ length: 20 }, (_, n) => ahead(`t-${n}`)));
  for (const [n, place] of places.entries()) assert.ok(Math.abs(place! - n) <= 2, `${places}`);
  assert.equal(places[0], 0);
  assert.equal(await ahead('before-any-worker'), undefined, 'its worker has it');
  assert.equal(await until(() => ahead('of-a-tenant', OWNER)), 0, 'another queue');
  ends[0]!();
  await until(() => ends.length === 2);
  await until(async () => (await ahead('t-0')) === undefined && (await ahead('t-1')) === 0);
});

test('a login of the previous version, which lacks the permission, asks once and gets no place', TIMEOUT, async t => {
  const users = serverUsers(['busy']);
  const granted = authorization(new Map(users.map(user => [user, { text: user }])));
  const config = granted.replaceAll(/"\$JS\.API\.(STREAM\.MSG\.GET\.A2A_WORK|CONSUMER\.INFO\.A2A_WORK\.\*)"/g, '"unused"');
  assert.notEqual(config, granted);
  const nats = await startNats({ config });
  t.after(() => nats.stop());
  const denied: string[] = [];
  const open = async (user: 'relay' | 'supervisor') => {
    const credentials = { user: userName(user), pass: user };
    const onEvent = ({ type }: { type: string }) => void denied.push(type);
    const log = await openJetStreamLog({ servers: nats.url, name: user, user, credentials, onEvent });
    t.after(() => log.close());
    return log;
  };
  await open('relay');
  const log = await open('supervisor');
  await log.work.request(ROLE, workItem('t'), { id: 't' });
  for (let n = 0; n < 5; n += 1) assert.equal(await log.work.ahead(ROLE, { taskId: 't' }), undefined);
  assert.equal(denied.filter(type => type === 'denied').length, 1);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KillRequests } from './kill-requests.ts';

const crashed: string[] = [];
const cluster = {
  crash: async (instance: string) => {
    crashed.push(instance);
    return instance === 'relay-1' ? undefined : `no process of this cluster is named ${instance}`;
  },
};

test('a process is killed only for a request with the token of this start, and never the process that asks', async () => {
  const kills = new KillRequests();
  const { token } = kills.hello();
  const ask = (kill: string, given: string) => kills.answer(cluster, 'console-1', { id: 7, token: given, kill });
  for (const wrong of ['', 'x', `${token}x`, new KillRequests().hello().token])
    assert.match((await ask('relay-1', wrong))?.fault ?? '', /an earlier start of the cluster/);
  assert.deepEqual(await ask('console-1', token), { id: 7, fault: 'the console does not kill itself' });
  assert.deepEqual(crashed, []);
  assert.deepEqual(await ask('relay-9', token), { id: 7, fault: 'no process of this cluster is named relay-9' });
  assert.deepEqual(await ask('relay-1', token), { id: 7 });
  assert.deepEqual(crashed, ['relay-9', 'relay-1']);
});

test('a message that is not a request to kill gets no answer', async () => {
  const kills = new KillRequests();
  for (const message of [undefined, null, 'kill', {}, { id: 1, kill: 'relay-1' }, { id: '1', token: '', kill: 'relay-1' }])
    assert.equal(await kills.answer(cluster, 'console-1', message), undefined);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addEnded, type EndedTask, endedKey, isEndedTasks, removedBefore, removeEnded } from '@hopline/log';
import { factRecord } from '@hopline/log/test-kit';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, nanos } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const PREFIX = 'a.b.00';
const AGE_MS = 1_000;

test('questions leave the lists when the age limit has removed their facts', { timeout: 90_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const log = await openJetStreamLog({ servers: nats.url, name: 'ages', shards: 1 });
  t.after(() => log.close());
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  // Shorter than the settings permit, because the age limit of the work queue is the same.
  const age = nanos(AGE_MS);
  await (await jetstreamManager(nc)).streams.update('A2A_LOG', { max_age: age, duplicate_window: age });
  let tasks = 0;
  const end = async (): Promise<EndedTask> => {
    const taskId = `t${++tasks}`;
    const { seq } = await log.facts.append(factRecord(taskId, 1, 0), { expected: 0, id: `${taskId}:me:1` });
    return [taskId, 'c', 'TASK_STATE_COMPLETED', Date.now(), 1, seq, { messages: 1, question: `question ${taskId}` }];
  };
  const listed = async () => {
    const value = (await log.taskLists.get(endedKey(PREFIX)))?.value;
    return value !== undefined && isEndedTasks(value) ? value.ended.map(([taskId]) => taskId) : [];
  };
  const first = await end();
  await addEnded(log.taskLists, PREFIX, [first]);
  let newest = first;
  let firstSeq = 0;
  await until(async () => {
    newest = await end();
    ({ firstSeq } = await log.facts.extent());
    return firstSeq > first[5];
  });
  await addEnded(log.taskLists, PREFIX, [newest]);
  assert.deepEqual(await listed(), ['t1', newest[0]], 'the bucket still has the question of a task without facts');
  assert.equal(await removeEnded(log.taskLists, PREFIX, removedBefore(firstSeq)), 1);
  assert.deepEqual(await listed(), [newest[0]]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger, startTelemetry } from '@hopline/telemetry';
import { newestOf, relayOn, sendMessage, storedWhen, write, writerOf } from './relay.test-kit.ts';

test('turns and stored bytes have the tenant and caller of their task, and a shard counts the records that it has read', async t => {
  const telemetry = await startTelemetry({ service: 'relay', instance: 'relay-1', version: '0', env: {} });
  t.after(() => telemetry.shutdown());
  const lines: { msg: string; tenant?: string; caller?: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ service: 'relay', instance: 'relay-1', level: 'info', destination });
  const log = createMemoryLog();
  const relay = await relayOn(log, { metrics: telemetry.metrics, logger });
  t.after(() => relay.stop());
  const [acme, globex] = [
    { tenant: 'acme', subject: 'eva' },
    { tenant: 'globex', subject: 'otto' },
  ];
  for (const [taskId, owner, tokens] of [
    ['t1', acme, 40],
    ['t2', globex, 1],
  ] as const) {
    await sendMessage(log, taskId, { owner });
    const writer = writerOf(log, { taskId });
    writer.add({ kind: 'open', lane: 'a', artifact: { name: 'response' } });
    for (let n = 0; n < tokens; n += 1) writer.token('a', 'a token of twenty-five chars');
    await write(writer, { kind: 'close', lane: 'a' }, { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' });
    await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_INPUT_REQUIRED', taskId);
  }
  await sendMessage(log, 't2', { owner: globex, messageId: 'm2' });
  await storedWhen(log, ({ aggregate }) => aggregate.turn === 2, 't2');
  const text = await telemetry.metricsText();
  const counted = (name: string, tenant: string) =>
    Number(
      new RegExp(`^hopline_tenant_${name}_total\\{.*tenant="${tenant}",caller="[0-9a-f]{12}"\\} (\\d+)$`, 'm').exec(text)?.[1],
    );
  assert.deepEqual([counted('turns', 'acme'), counted('turns', 'globex')], [1, 2]);
  // The sum over a task's records, as its newest record states it.
  const { seq, record } = await newestOf(log, 't1');
  const newest = await log.facts.last('t1');
  assert.equal(newest?.seq, seq);
  assert.ok(
    counted('stored_bytes', 'acme') > (record.aggregate.storedBytes ?? 0),
    'the newest record states the bytes before it',
  );
  assert.ok(counted('stored_bytes', 'acme') > 2 * counted('stored_bytes', 'globex'));
  const read = [...text.matchAll(/^hopline_shard_records_total\{.*shard="\d+"\} (\d+)$/gm)].map(([, records]) => Number(records));
  const appended = (await log.inputs.extent()).ofShard(0).lastSeq;
  assert.equal(
    read.reduce((sum, records) => sum + records, 0),
    appended,
  );
  const created = lines.filter(({ msg }) => msg === 'task created');
  assert.deepEqual(
    created.map(({ tenant }) => tenant),
    ['acme', 'globex'],
  );
  assert.ok(created.every(({ caller }) => /^[0-9a-f]{12}$/.test(caller!)));
});

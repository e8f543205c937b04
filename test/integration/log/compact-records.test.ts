import assert from 'node:assert/strict';
import { createReadStream, globSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { FactRecord } from '@hopline/events';
import { FACTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { readStoredTasks } from '@hopline/replay';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { startNats } from '../../support/nats/nats-server.ts';

const FOLDER = fileURLToPath(new URL('../../replay/golden/', import.meta.url));

test('the log returns every record of the recorded tasks as it was appended, in 77 % of the bytes', async t => {
  const server = await startNats();
  const nc = await connect({ servers: server.url });
  const log = await openJetStreamLog({ servers: server.url, name: 'records', shards: 1 });
  t.after(async () => {
    await log.close();
    await nc.close();
    await server.stop();
  });
  const bytes = { whole: 0, stored: 0 };
  for (const path of globSync('*/*.hopline.jsonl', { cwd: FOLDER }).sort()) {
    for await (const task of readStoredTasks(createReadStream(`${FOLDER}${path}`))) {
      if ('unreadable' in task) assert.fail(`${path}: ${task.unreadable}`);
      const records: FactRecord[] = task.facts.map(({ record }) => record);
      // Two recordings may have a task of the same id.
      const before = (await log.facts.last(task.taskId))?.seq ?? 0;
      let expected = before;
      for (const [index, record] of records.entries()) {
        expected = (await log.facts.append(record, { expected, id: `${path}:${index}` })).seq;
        bytes.whole += Buffer.byteLength(JSON.stringify(record));
      }
      const read: FactRecord[] = [];
      for await (const { record } of log.facts.read(task.taskId, before + 1)) read.push(record);
      assert.deepEqual(read, records, path);
      assert.deepEqual((await log.facts.last(task.taskId))?.record, records.at(-1), path);
    }
  }
  const jsm = await jetstreamManager(nc);
  const { messages } = (await jsm.streams.info(FACTS_STREAM)).state;
  for (let seq = 1; seq <= messages; seq += 1)
    bytes.stored += (await jsm.streams.getMessage(FACTS_STREAM, { seq }))?.data.length ?? 0;
  assert.ok(messages > 50 && bytes.stored < 0.77 * bytes.whole, JSON.stringify({ messages, ...bytes }));
});

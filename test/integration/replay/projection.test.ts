import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Log } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { TaskTable } from '../../../infra/examples/projection/task-table.ts';
import { startNats } from '../../support/nats/nats-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'hopline-projection-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const CHUNKS = 20;
const chunk = { firstSeq: 1, lastSeq: 1, count: 4, n: 4, reason: 'ready', heldMs: 0, firstAt: 0, lastAt: 0 };

/** A task with a call and chunks of four tokens, each stored in a separate record. */
async function store(log: Log, taskId: string): Promise<void> {
  const task = await new StoredScenario(log.facts, taskId, () => 1_000).message('hi').store();
  const from = supervisor();
  await task.input(from, { kind: 'call', call: 'call-1', agent: 'writer' }).open(from, 'a').store();
  for (let n = 0; n < CHUNKS; n += 1)
    await task.when({ kind: 'run', from, lane: 'a', text: 'four tokens', last: false, n, chunk }).store();
  await task.input(from, { kind: 'ended', call: 'call-1', state: 'TASK_STATE_COMPLETED' }).store();
  await task.input(from, { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
}

test('a projection into SQLite continues from its checkpoint, and counts no record twice', async t => {
  const server = await startNats();
  const log = await openJetStreamLog({ servers: server.url, name: 'projection', shards: 4 });
  const path = join(folder, 'tasks.sqlite');
  try {
    const first = Array.from({ length: 30 }, (_, index) => `first-${index}`);
    await Promise.all(first.map(taskId => store(log, taskId)));
    const table = new TaskTable(path);
    const started = performance.now();
    const done = await table.update(log);
    t.diagnostic(`${Math.round(done.records / ((performance.now() - started) / 1_000))} records/s`);
    assert.deepEqual(done.tokens, first.length * CHUNKS * 4);
    assert.deepEqual(await table.update(log), { records: 0, tokens: 0 });
    table.close();
    await store(log, 'second');
    const again = new TaskTable(path);
    assert.equal((await again.update(log)).tokens, CHUNKS * 4);
    const [sum] = again.query(
      'SELECT count(*) AS tasks, sum(tokens) AS tokens, min(frames) AS frames, max(state) AS state FROM tasks',
    );
    assert.deepEqual(
      { ...(sum as object) },
      { tasks: 31, tokens: 31 * CHUNKS * 4, frames: CHUNKS + 4, state: 'TASK_STATE_COMPLETED' },
    );
    const [calls] = again.query(
      "SELECT count(*) AS calls FROM calls WHERE state = 'TASK_STATE_COMPLETED' AND ended_ms >= started_ms",
    );
    assert.deepEqual({ ...(calls as object) }, { calls: 31 });
    again.close();
  } finally {
    await log.close();
    await server.stop();
  }
});

test('a projection begins again when the log has lost records that it contains', async () => {
  const [log, lost] = [createMemoryLog({ shards: 4 }), createMemoryLog({ shards: 4 })];
  for (const taskId of ['first', 'second']) await store(log, taskId);
  await store(lost, 'second');
  const table = new TaskTable(join(folder, 'lost.sqlite'));
  await table.update(log);
  assert.equal((await table.update(lost)).tokens, CHUNKS * 4);
  assert.deepEqual(
    table.query('SELECT id, tokens FROM tasks').map(row => ({ ...(row as object) })),
    [{ id: 'second', tokens: CHUNKS * 4 }],
  );
  table.close();
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Task } from '@hopline/a2a';
import { SHARDS_DEFAULT } from '@hopline/events';
import { isEndedTasks, type Log, ownerFilters, readWebhookUsage } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { until } from '../kit/until.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';
import {
  AGENT,
  ask,
  CALLERS,
  type CallerName,
  call,
  listAll,
  listWebhooks,
  PUSH_ENV,
  replay,
  type SeenCluster,
  writeKeys,
} from './recorded-callers.ts';

/**
 * The services of this version start on stores that earlier commits have left (`record-cluster.ts`): one in the formats of 2026-11-24, and one in those of
 * 2026-11-30. CI has no earlier commit, so the stores are in the repository.
 */
const RECORDINGS = ['97f4c262', 'd72f9863'] as const;
const INPUT_REQUIRED = 'TASK_STATE_INPUT_REQUIRED';
/** As recorded. */
const SHARDS = 4;
const NAMES = Object.keys(CALLERS) as CallerName[];
const idsOf = (tasks: readonly Task[]) => tasks.map(({ id }) => id);

for (const commit of RECORDINGS) describe(`the store of ${commit}`, () => upgrade(commit));

function upgrade(commit: (typeof RECORDINGS)[number]): void {
  /** Rows without what a list shows: all of the store. */
  const hasOldRows = commit === '97f4c262';
  const recorded = fileURLToPath(new URL(`${commit}/`, import.meta.url));
  const SEEN = JSON.parse(readFileSync(join(recorded, 'seen.json'), 'utf8')) as SeenCluster;
  const WAITING = SEEN.tasks.find(({ state }) => state === INPUT_REQUIRED)!;
  const ENDED = SEEN.tasks.filter(({ state }) => state !== INPUT_REQUIRED);

  let dir: string;
  let nats: NatsServer;
  let cluster: Cluster;
  let log: Log;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'hopline-upgrade-'));
    execFileSync('tar', ['-xzf', join(recorded, 'store.tar.gz'), '-C', dir]);
    writeKeys(join(dir, 'keys.json'));
    nats = await startNats({ dir });
    cluster = await Cluster.start({
      nats,
      agents: [AGENT],
      env: { HOPLINE_AUTH_API_KEYS_FILE: join(dir, 'keys.json'), ...PUSH_ENV },
    });
    log = await openJetStreamLog({ servers: nats.url, name: 'test' });
  });

  after(async () => {
    await log?.close();
    await cluster?.[Symbol.asyncDispose]();
    await nats?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  test('the log of the previous release keeps its number of shards without a setting', () => {
    assert.equal(log.shards, SHARDS);
    assert.notEqual(SHARDS, SHARDS_DEFAULT);
  });

  test('each caller lists its own tasks of the previous release, as that release showed them', async () => {
    for (const name of NAMES) {
      const tasks = await listAll(cluster.url, name, { pageSize: 2 });
      assert.deepEqual(tasks, SEEN.lists[name]);
      assert.deepEqual(
        idsOf(tasks).sort(),
        SEEN.tasks
          .filter(({ caller }) => caller === name)
          .map(({ id }) => id)
          .sort(),
      );
    }
  });

  test('tasks of the previous release are found by context, state and text, and only by their owners', async () => {
    const find = async (params: Record<string, unknown>) => {
      const found = await Promise.all(NAMES.map(name => listAll(cluster.url, name, params)));
      return found.flatMap((tasks, index) => tasks.map(({ id }) => `${NAMES[index]} ${id}`));
    };
    const named = (wanted: (seen: SeenCluster['tasks'][0]) => boolean) =>
      SEEN.tasks.filter(wanted).map(({ caller, id }) => `${caller} ${id}`);
    const { contextId } = ENDED[0]!.task;
    assert.deepEqual(
      await find({ contextId }),
      named(({ task }) => task.contextId === contextId),
    );
    assert.deepEqual(
      await find({ status: 'TASK_STATE_FAILED' }),
      named(({ state }) => state === 'TASK_STATE_FAILED'),
    );
    assert.deepEqual(
      await find({ text: 'COUNT THE' }),
      named(({ task }) => /count the/.test(JSON.stringify(task.history))),
    );
    assert.deepEqual(
      await find({ text: 'bridge is closed' }),
      named(({ state }) => state === 'TASK_STATE_FAILED'),
    );
  });

  test('ended tasks of the previous release are replayed and resumed after each of their events, and read as they were', async () => {
    for (const { id, caller, frames, task } of ENDED) {
      assert.deepEqual(await call(cluster.url, caller, 'GetTask', { id }), task);
      assert.deepEqual(await replay(cluster.url, caller, id, '0.0'), frames);
      for (const [index, frame] of frames.entries())
        assert.deepEqual(await replay(cluster.url, caller, id, frame.id), frames.slice(index + 1), `${id} after ${frame.id}`);
    }
  });

  test('a task that has waited for its client since the previous release is answered, and new and old tasks share one list', async () => {
    const { caller, id, task } = WAITING;
    await ask(cluster.url, caller, 'the first', { taskId: id, contextId: task.contextId });
    const created = await ask(cluster.url, caller, 'count the buses');
    const expected = [created, id, ...idsOf(SEEN.lists[caller]).filter(one => one !== id)];
    assert.deepEqual(idsOf(await listAll(cluster.url, caller, { pageSize: 2 })), expected);
    // Rows of both versions, in the lists of one owner.
    await until(async () => {
      const lists = await log.taskLists.match(ownerFilters('supervisor', CALLERS[caller]));
      const rows = lists.flatMap(({ value }) => (isEndedTasks(value) ? value.ended : []));
      const shown = rows.filter(row => row[6] !== undefined).map(([taskId]) => taskId);
      return (
        rows.length === expected.length &&
        shown.length === (hasOldRows ? 2 : expected.length) &&
        [created, id].every(one => shown.includes(one))
      );
    });
    const tasks = await listAll(cluster.url, caller, { pageSize: 2 });
    assert.deepEqual(idsOf(tasks), expected);
    for (const shown of tasks.slice(0, 2)) {
      const { artifacts: _artifacts, ...read } = await call<Task>(cluster.url, caller, 'GetTask', { id: shown.id });
      assert.deepEqual(shown, read, 'the row shows what the log has');
      assert.equal(shown.status.state, 'TASK_STATE_COMPLETED');
    }
    assert.deepEqual(idsOf(await listAll(cluster.url, caller, { text: 'buses' })), [created]);
  });

  test('the webhooks of a task of the previous release are listed, replaced and deleted, and count from then on', async () => {
    const { caller, id } = WAITING;
    assert.deepEqual(await listWebhooks(cluster.url, caller, id), SEEN.webhooks ?? []);
    const config = { taskId: id, id: 'recorded', url: 'http://127.0.0.1:65000/elsewhere' };
    await call(cluster.url, caller, 'CreateTaskPushNotificationConfig', config);
    assert.equal((await readWebhookUsage(log.pushConfigs, CALLERS[caller])).owner.entries, 1);
    await call(cluster.url, caller, 'DeleteTaskPushNotificationConfig', { taskId: id, id: 'recorded' });
    assert.deepEqual(await listWebhooks(cluster.url, caller, id), []);
    assert.equal((await readWebhookUsage(log.pushConfigs, CALLERS[caller])).owner.entries, 0);
  });
}

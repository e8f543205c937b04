import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '@hopline/log';
import { INPUTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { type NatsServer, startNatsCluster } from '../support/nats/nats-server.ts';

/**
 * Which records three replicas keep when one of three servers loses power (docs/reference/failures.md, "Durability"). `n1` is away while `n0`
 * and `n2` acknowledge records; `n2` loses power; `n0` stalls; `n1` and `n2` return and elect a leader; `n0` continues.
 *
 * A loss of power is modelled by the files of the server: it is killed, and its store is put back as it was at an earlier moment. That is a
 * disk to which nothing was synced since, which the default `sync_interval` of 2 minutes permits. With `always`, every acknowledged record
 * was synced before its acknowledgement, so the disk has everything that the files had at the moment of death, and they stay as they are.
 *
 * The test does not prove that the server syncs before each acknowledgement, or that the disk obeys a sync (SIGKILL keeps the kernel's page cache). A real loss may also keep some pages and lose others, whereas this one leaves an earlier state.
 */

const NODES = ['n0', 'n1', 'n2'] as const;
const RECORDS = 100;
/** Stored by all three servers before the first of them goes away. */
const RECORDS_BEFORE = 10;
/** Two elections, of the servers' own group and of the stream, take 4 to 9 s each on an idle machine. */
const WAIT_MS_MAX = 60_000;
const TASK = 'task-of-the-test';

test('with the default sync_interval, a single loss of power can destroy all acknowledged records', {
  timeout: 240_000,
}, async t => {
  const { acknowledged, gone } = await losePower(t, { syncInterval: undefined, isSynced: false });
  // Mostly all are gone. In one run of 2026-11-28 `n0` gave back all but the first, whose sequence another record has.
  assert.ok(
    gone.includes(acknowledged[0]!),
    'nats-server kept acknowledged records that it lost before: correct "Durability" in docs/reference/failures.md, and this test',
  );
});

test('with sync_interval always, the same loss of power destroys nothing', { timeout: 240_000 }, async t => {
  const { gone } = await losePower(t, { syncInterval: 'always', isSynced: true });
  assert.deepEqual(gone, []);
});

/**
 * `isSynced`: the disk of the server that loses power has everything that the server wrote. Resolves with ids. `gone`: the ids of records
 * that the leader lacks.
 */
async function losePower(t: TestContext, { syncInterval, isSynced }: { syncInterval: string | undefined; isSynced: boolean }) {
  const cluster = await startNatsCluster(NODES, { syncInterval });
  t.after(() => cluster.stop());
  const [n0, n1, n2] = NODES.map(name => cluster.servers.get(name)!) as [NatsServer, NatsServer, NatsServer];

  const first = await openLog([n0, n1, n2]);
  const before = await append(first, 'before', RECORDS_BEFORE);
  await first.close();
  await allCurrent([n0, n1, n2]);
  await n1.kill();

  const without1 = await openLog([n0, n2]);
  const putBack = copyOfDisk(t, n2);
  const acknowledged = await append(without1, 'acknowledged', RECORDS);
  await n2.kill();
  await without1.close();
  if (!isSynced) putBack();
  n0.pause();

  await Promise.all([n1.restart(), n2.restart()]);
  const log = await openLog([n1, n2]);
  t.after(() => log.close());
  // A majority stores a record in the term of the new leader, so that `n0` can no longer become leader with the records it has.
  const later = await append(log, 'later', 1);
  n0.resume();
  // Wait until the server answers again.
  await withStreams([n0], async () => {});

  const found = await idsOfLeader([n1, n2]);
  for (const id of [...before, ...later]) assert.ok(found.has(id), `${id} is gone, which every disk had`);
  const gone = acknowledged.filter(id => !found.has(id));
  t.diagnostic(`${gone.length} of ${acknowledged.length} acknowledged records are gone`);
  return { acknowledged, gone };
}

function openLog(servers: readonly NatsServer[]): Promise<Log> {
  const urls = servers.map(({ url }) => url).join(',');
  return openJetStreamLog({ servers: urls, name: 'one-power-loss', replicas: NODES.length, openTimeoutMs: WAIT_MS_MAX });
}

/** Resolves with the ids of the records when the log has acknowledged all of them. */
async function append(log: Log, name: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `${name}-${index}`);
  for (const id of ids) {
    const message = { messageId: id, role: 'ROLE_USER' as const, parts: [] };
    const input = {
      kind: 'message' as const,
      message,
      contextId: 'context',
      role: 'supervisor' as const,
      profile: 'transparent',
    };
    await log.inputs.append(TASK, { v: 1, at: Date.now(), from: 'client', input }, { id, timeoutMs: WAIT_MS_MAX });
  }
  return ids;
}

/** Copies the store at one moment, while the server is paused; the function returned puts the copy back. */
function copyOfDisk(t: TestContext, server: NatsServer): () => void {
  const copy = mkdtempSync(join(tmpdir(), 'hopline-disk-'));
  t.after(() => rmSync(copy, { recursive: true, force: true }));
  server.pause();
  cpSync(server.dir, copy, { recursive: true });
  server.resume();
  return () => {
    rmSync(server.dir, { recursive: true });
    cpSync(copy, server.dir, { recursive: true });
  };
}

/** Resolves when the leader of the stream of inputs has stored its newest record on the two others. */
function allCurrent(servers: readonly NatsServer[]): Promise<void> {
  return withStreams(servers, async jsm => {
    for (const end = Date.now() + WAIT_MS_MAX; ; await sleep(100)) {
      // Without an answer there is no leader yet.
      const cluster = await jsm.streams.info(INPUTS_STREAM).then(
        info => info.cluster,
        () => undefined,
      );
      const replicas = cluster?.replicas ?? [];
      if (replicas.length === NODES.length - 1 && replicas.every(({ current, lag = 0 }) => current && lag === 0)) return;
      if (Date.now() > end) assert.fail(`a server does not follow: ${JSON.stringify(cluster)}`);
    }
  });
}

/**
 * Ids of the records that the leader has. `n0` may become leader when it has caught up, as on a busy machine, and is then asked to step
 * down. A former leader also answers until it notices the election. Its answers can be recognized: each lists only the other servers.
 * It may keep records that the others do not have. They are not read through a consumer, because it might be placed on `n0`, where
 * nats-server 2.15.2 keeps records that the cluster has lost.
 */
function idsOfLeader(servers: readonly NatsServer[]): Promise<Set<string>> {
  return withStreams(servers, async (jsm, nc) => {
    for (const end = Date.now() + WAIT_MS_MAX; ; await sleep(100)) {
      try {
        const { state, cluster } = await jsm.streams.info(INPUTS_STREAM);
        if (cluster!.leader === 'n0') {
          await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${INPUTS_STREAM}`);
          throw new Error('n0 is the leader');
        }
        if (!cluster!.replicas!.some(({ name }) => name === 'n0')) throw new Error('n0 has answered, and was the leader');
        const ids = new Set<string>();
        for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
          const stored = await jsm.streams.getMessage(INPUTS_STREAM, { seq });
          ids.add(stored!.header.get('Nats-Msg-Id'));
        }
        return ids;
      } catch (error) {
        // Also tries again while the servers elect a leader of their own group.
        if (Date.now() > end) throw error;
      }
    }
  });
}

async function withStreams<T>(
  servers: readonly NatsServer[],
  use: (jsm: JetStreamManager, nc: NatsConnection) => Promise<T>,
): Promise<T> {
  const nc = await connect({ servers: servers.map(({ url }) => url), maxReconnectAttempts: -1 });
  try {
    return await use(await jetstreamManager(nc, { checkAPI: false }), nc);
  } finally {
    await nc.close();
  }
}

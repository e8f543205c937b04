import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { InputRecord } from '@hopline/events';
import { freePort } from '@hopline/local-cluster';
import { LogUnavailable } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { startNats } from '../../support/nats/nats-server.ts';
import { canMountDisk, fillDisk, mountDisk } from '../../support/small-disk.ts';

const DISK_BYTES = 32 * 1024 ** 2;
const record = (text: string): InputRecord => {
  const from = { id: 'c', agent: 'a', turn: 1, attempt: 1 };
  return { v: 1, at: 1, from, n: 1, inputs: [{ kind: 'text', lane: 'l', tokens: [text] }] };
};

test('readiness and the chart’s liveness probe detect a full disk, and a restart heals the server even before there is room', {
  skip: !canMountDisk && 'only root can mount a small disk',
  timeout: 180_000,
}, async t => {
  const disk = mountDisk(DISK_BYTES);
  t.after(() => disk.unmount());
  const monitor = await freePort();
  const server = await startNats({ dir: disk.path, config: `http: "127.0.0.1:${monitor}"` });
  t.after(() => server.stop());
  const log = await openJetStreamLog({ servers: server.url, name: 'full-disk' });
  t.after(() => log.close());
  let next = 0;
  const append = (bytes: number) => log.inputs.append('task', record('x'.repeat(bytes)), { id: `task:${next++}` });
  const status = async (query: string) => (await fetch(`http://127.0.0.1:${monitor}/healthz${query}`)).status;
  await append(1);
  await log.checkAppends();

  const ballast = join(disk.path, 'ballast');
  fillDisk(ballast);
  await assert.rejects(append(1024 ** 2), LogUnavailable);
  await assert.rejects(log.checkAppends(), LogUnavailable);
  await log.check();
  assert.equal(await status(''), 503);
  assert.equal(await status('?js-enabled-only=true'), 200, 'a probe of JetStream alone does not see it');

  rmSync(ballast);
  await assert.rejects(append(1), LogUnavailable, 'room alone does not heal it');
  assert.equal(await status(''), 503);

  fillDisk(ballast);
  await server.restart();
  assert.equal(await status(''), 200, 'a server starts on a full disk, so that tasks can be read');
  rmSync(ballast);
  await append(1);
  await log.checkAppends();
});

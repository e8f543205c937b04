import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { defineConfig } from '@hopline/lifecycle';
import { BUCKETS, backUpFromSettings, LOG_SETTINGS, restoreFromSettings } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { collect } from '../../kit/collect.ts';
import { createStreams, startNats } from '../../support/nats/nats-server.ts';

const settingsOf = (url: string) => defineConfig(LOG_SETTINGS).load({ NATS_URL: url });

test('a failed restore removes what it has restored, and no stream that another process has created meanwhile', {
  timeout: 120_000,
}, async t => {
  const home = mkdtempSync(join(tmpdir(), 'hopline-restore-'));
  t.after(() => rmSync(home, { recursive: true }));
  const folder = join(home, 'backup');
  const source = await startNats();
  t.after(() => source.stop());
  await createStreams(source.url);
  await backUpFromSettings(settingsOf(source.url), { folder, onStream: () => {} });

  const target = await startNats();
  t.after(() => target.stop());
  const nc = await connect({ servers: target.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  // This stream is restored last, so that another process can have created it by then.
  const name = `KV_${BUCKETS.leases}`;
  let created: Promise<unknown> | undefined;
  const onStream = () => {
    created ??= jsm.streams.add({ name, subjects: [`$KV.${BUCKETS.leases}.>`] });
  };
  await assert.rejects(restoreFromSettings(settingsOf(target.url), { folder, onStream }), /stream name already in use/);
  await created;
  const left = await collect(jsm.streams.names());
  assert.deepEqual(left, [name]);
});

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { Cluster } from '../support/cluster/cluster.ts';
import { startNats } from '../support/nats/nats-server.ts';
import { startWebhook } from '../support/webhooks/webhook.ts';
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
 * Records a cluster of the version that is checked out: what its callers saw, and the store of its NATS server. To record an earlier version, copy the files
 * of this folder into a checkout of it.
 */
const USAGE = `node test/upgrade/record-cluster.ts COMMIT FOLDER

Writes FOLDER/seen.json and FOLDER/store.tar.gz.`;

/** The store must not expire before the tests that read it: 100 years. */
const AGE_NANOS = 100 * 365 * 24 * 3600 * 1e9;
/** Ended tasks move into the lists of their owners within this time. */
const MOVED_MS = 7_000;
const QUESTIONS: [CallerName, string][] = [
  ['anna', 'count the trains'],
  ['anna', 'fail at the bridge'],
  ['anna', 'what waits here?'],
  ['anna', `long ${'question '.repeat(300)}`],
  ['bert', 'count the ships'],
  ['otherAnna', 'count the planes'],
];

const [commit, target] = process.argv.slice(2);
if (commit === undefined || target === undefined) throw new Error(USAGE);
const folder = resolve(target);
mkdirSync(folder, { recursive: true });
const dir = mkdtempSync(join(tmpdir(), 'hopline-record-'));
const nats = await startNats({ dir });
const keys = join(dir, 'keys.json');
writeKeys(keys);
const cluster = await Cluster.start({
  nats,
  agents: [AGENT],
  notifiers: 1,
  env: { HOPLINE_AUTH_API_KEYS_FILE: keys, HOPLINE_SHARDS: '4', ...PUSH_ENV },
});
const { url } = cluster;
const webhook = await startWebhook();
const seen: SeenCluster = { commit, tasks: [], lists: { anna: [], bert: [], otherAnna: [] }, webhooks: [] };
for (const [caller, question] of QUESTIONS) {
  const id = await ask(url, caller, question);
  const task = await call<SeenCluster['tasks'][0]['task']>(url, caller, 'GetTask', { id });
  const { state } = task.status;
  const frames = state === 'TASK_STATE_INPUT_REQUIRED' ? [] : await replay(url, caller, id, '0.0');
  seen.tasks.push({ id, caller, state, frames, task });
  if (state !== 'TASK_STATE_INPUT_REQUIRED') continue;
  const config = { taskId: id, id: 'recorded', url: `${webhook.url}/events`, token: 'of the client' };
  await call(url, caller, 'CreateTaskPushNotificationConfig', config);
  seen.webhooks = await listWebhooks(url, caller, id);
}
await delay(MOVED_MS);
for (const caller of Object.keys(CALLERS) as CallerName[]) seen.lists[caller] = await listAll(url, caller);
const nc = await connect({ servers: nats.url });
const { streams } = await jetstreamManager(nc);
for await (const { config } of streams.list())
  if (config.max_age > 0) await streams.update(config.name, { ...config, max_age: AGE_NANOS });
await nc.close();
await cluster[Symbol.asyncDispose]();
await webhook[Symbol.asyncDispose]();
await nats.stop();
execFileSync('tar', ['-czf', join(folder, 'store.tar.gz'), '-C', dir, 'jetstream']);
writeFileSync(join(folder, 'seen.json'), `${JSON.stringify(seen, null, 1)}\n`);
rmSync(dir, { recursive: true, force: true });
process.exit();

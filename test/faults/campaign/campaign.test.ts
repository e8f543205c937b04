import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SHARDS } from '../../support/cluster/cluster.ts';
import { runCampaign } from './campaign.ts';
import { SIZE_DEFAULT } from './campaign-cluster.ts';
import { FAULT_CLASSES, mixedClass } from './fault-classes.ts';

/** Classes that run here with a few faults each. `npm run faults` runs every class for longer. */
const NAMES = ['relay SIGKILL', 'rolling restart', 'NATS restart'];
/** Has agents of every kind, but no small disks, because not every machine can mount one. */
const MIXED = mixedClass(1, { replicas: 1, hasSmallDisks: false });
/** All of them run on the cluster of the mixed class, because starting another one costs as much as a class. */
const CLASSES = [
  ...FAULT_CLASSES.filter(({ name }) => NAMES.includes(name)).map(one => ({ ...one, needs: MIXED.needs! })),
  MIXED,
];
const TASKS = 32;
/** The first eight tasks of the mixed class are of every kind: each agent, forks, cancels, questions, webhooks, silence, stored steps, failures. */
const SEED = 401;
const CONCURRENCY = 4;
/** One for each client. `npm run faults` starts six times as many after its faults. */
const PROBES = 4;
/** Kept short, because each fault waits until a task is in mid-text. */
const QUIET_MS = { min: 300, max: 1_000 };

test('every promise holds for all tasks of a short campaign: relay killed, rolling restart, nats-server restarted, several faults at once [S2-32 S3-31]', {
  timeout: 420_000,
}, async t => {
  const results = await runCampaign({
    classes: CLASSES,
    replicas: 1,
    size: { ...SIZE_DEFAULT, shards: SHARDS },
    tasks: TASKS,
    seed: SEED,
    concurrency: CONCURRENCY,
    faultsMin: 1,
    probes: PROBES,
    quietMs: QUIET_MS,
    print: line => t.diagnostic(line),
  });
  assert.deepEqual(
    results.map(({ name, violations }) => [name, violations]),
    CLASSES.map(({ name }) => [name, []]),
  );
  for (const { name, faults, tasks } of results) assert.ok(faults > 0 && tasks >= TASKS / CLASSES.length, name);
});

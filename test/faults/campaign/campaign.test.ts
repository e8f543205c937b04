import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SHARDS } from '../../support/cluster/cluster.ts';
import { runCampaign } from './campaign.ts';
import { SIZE_DEFAULT } from './campaign-cluster.ts';
import { FAULT_CLASSES, mixedClass } from './fault-classes.ts';

/** Classes that run here with a few faults each. `npm run faults` runs every class for longer. */
const NAMES = ['relay SIGKILL', 'rolling restart', 'NATS restart'];
/** Its agents are of every kind. Without small disks, because not every machine may mount one. */
const MIXED = mixedClass(1, { replicas: 1, hasSmallDisks: false });
const CLASSES = [...FAULT_CLASSES.filter(({ name }) => NAMES.includes(name)), MIXED];
const TASKS = 40;
const CONCURRENCY = 4;
/** Two for each client. `npm run faults` starts three times as many after its faults. */
const PROBES = 8;

test('every promise holds for all tasks of a short campaign: relay killed, rolling restart, nats-server restarted, several faults at once [S2-32 S3-31]', {
  timeout: 420_000,
}, async t => {
  const results = await runCampaign({
    classes: CLASSES,
    replicas: 1,
    size: { ...SIZE_DEFAULT, shards: SHARDS },
    tasks: TASKS,
    seed: 1,
    concurrency: CONCURRENCY,
    faultsMin: 1,
    probes: PROBES,
    print: line => t.diagnostic(line),
  });
  assert.deepEqual(
    results.map(({ name, violations }) => [name, violations]),
    CLASSES.map(({ name }) => [name, []]),
  );
  for (const { name, faults, tasks } of results) assert.ok(faults > 0 && tasks >= TASKS / CLASSES.length, name);
});

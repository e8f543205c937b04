import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SHARDS_DEFAULT } from '@hopline/events';
import { SLOTS_DEFAULT } from '@hopline/log';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { CHART, manifestsOf, skip, template } from './rendered-chart.ts';
import { coresOf, INDEX_ENTRY_BYTES, type Load, NATS_HEAP_SHARE, natsMib } from './size-model.ts';

/** The size profiles of the chart, and the load that each names in its first line. */
const SIZES: Record<string, Load> = {
  small: { streams: 100, tasks: 100_000 },
  medium: { streams: 1_000, tasks: 1_000_000 },
  large: { streams: 5_000, tasks: 5_000_000 },
};

type Resources = { requests: { cpu: string | number; memory: string }; limits: { memory: string } };
type Role = { replicas: number; resources: Resources; settings?: Record<string, number> };
type Values = {
  [member: string]: unknown;
  shards?: number;
  ingress: Role;
  relay: Role;
  supervisor: Role;
  notifier: Role;
  nats: { replicas: number; storage: { size: string }; resources: Resources };
};

const fileOf = (size: string): string => join(CHART, `values-${size}.yaml`);
const textOf = (size: string): string => readFileSync(fileOf(size), 'utf8');
const valuesOf = (size: string): Values => parse(textOf(size)) as Values;
const defaults = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Values;

const UNITS_MIB: Record<string, number> = { Mi: 1, Gi: 1024, Ti: 1024 ** 2 };
const mibOf = (quantity: string): number => Number.parseFloat(quantity) * UNITS_MIB[quantity.slice(-2)]!;
const coresOfQuantity = (quantity: string | number): number =>
  String(quantity).endsWith('m') ? Number.parseFloat(String(quantity)) / 1000 : Number(quantity);

/** Merges a values file into the values of the chart, like helm. */
function merged(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over === undefined ? base : over;
  const names = new Set([...Object.keys(base), ...Object.keys(over)]);
  return Object.fromEntries([...names].map(name => [name, merged(base[name], over[name])]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Share of the volume that each bucket gets, as hopline.streamBytes of the chart computes it. */
const BUCKET_SHARE = (2 / 3) * (5 / 400) * (4 / 3);

for (const [size, load] of Object.entries(SIZES)) {
  const values = valuesOf(size);

  test(`the values for ${size} clusters are accepted by the chart's schema, and name their load`, () => {
    const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as object;
    const validate = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
    const isValid = validate(merged(defaults, values));
    assert.ok(isValid, JSON.stringify(validate.errors?.slice(0, 3)));
    const [first] = textOf(size).split('\n') as [string];
    for (const amount of [load.streams, load.tasks]) assert.ok(first.includes(amount.toLocaleString('en-US')), first);
  });

  test(`the values for ${size} clusters give NATS the memory and every process the CPU that the capacity model names`, () => {
    const { nats } = values;
    const heapMib = mibOf(nats.resources.limits.memory) * NATS_HEAP_SHARE;
    assert.ok(heapMib >= natsMib(load), `${heapMib} MiB of heap, ${natsMib(load)} needed`);
    assert.ok(coresOfQuantity(nats.resources.requests.cpu) >= coresOf('nats', load), `NATS needs ${coresOf('nats', load)} cores`);
    assert.ok(mibOf(nats.storage.size) * 1024 ** 2 * BUCKET_SHARE >= load.tasks * INDEX_ENTRY_BYTES, 'room for index entries');
    for (const service of ['ingress', 'relay', 'supervisor'] as const) {
      const { replicas, resources } = values[service];
      const cores = coresOf(service, load);
      assert.ok(replicas * coresOfQuantity(resources.requests.cpu) >= cores, `${service} needs ${cores} cores`);
      // One process uses one core, and one process may be gone.
      assert.ok(replicas - 1 >= cores, `${service} needs ${cores} processes and one more`);
      assert.ok(mibOf(resources.requests.memory) <= mibOf(resources.limits.memory));
    }
    assert.ok(values.relay.replicas <= (values.shards ?? SHARDS_DEFAULT), 'each relay has a shard');
    const slots = values.supervisor.settings?.HOPLINE_SLOTS ?? SLOTS_DEFAULT;
    assert.ok((values.supervisor.replicas - 1) * slots >= load.streams, 'slots for all streams without one supervisor');
  });

  test(`the chart renders with the values for ${size} clusters`, { skip }, () => {
    const manifests = manifestsOf(
      execFileSync('helm', [...template([]), '--values', fileOf(size)], { encoding: 'utf8', maxBuffer: 1 << 26 }),
    );
    const relay = manifests.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-relay'))!;
    assert.equal(relay.spec.replicas, values.relay.replicas);
    const nats = manifests.find(({ kind }) => kind === 'StatefulSet')!;
    assert.deepEqual(nats.spec.template!.spec.containers[0]!.resources?.limits, values.nats.resources.limits);
  });
}

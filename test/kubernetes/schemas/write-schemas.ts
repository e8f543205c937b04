import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const USAGE = `node test/kubernetes/schemas/write-schemas.ts KUBERNETES_SCHEMAS CRD.yaml...

Writes the schemas beside this file. README.md names the sources.`;

type Schema = { [member: string]: unknown };

/** Built-in kinds of Kubernetes that the charts use, by their names in the definitions. */
const KINDS = {
  'configmap-v1': 'core.v1.ConfigMap',
  'persistentvolumeclaim-v1': 'core.v1.PersistentVolumeClaim',
  'pod-v1': 'core.v1.Pod',
  'secret-v1': 'core.v1.Secret',
  'service-v1': 'core.v1.Service',
  'serviceaccount-v1': 'core.v1.ServiceAccount',
  'deployment-apps-v1': 'apps.v1.Deployment',
  'statefulset-apps-v1': 'apps.v1.StatefulSet',
  'horizontalpodautoscaler-autoscaling-v2': 'autoscaling.v2.HorizontalPodAutoscaler',
  'cronjob-batch-v1': 'batch.v1.CronJob',
  'job-batch-v1': 'batch.v1.Job',
  'ingress-networking-v1': 'networking.v1.Ingress',
  'networkpolicy-networking-v1': 'networking.v1.NetworkPolicy',
  'poddisruptionbudget-policy-v1': 'policy.v1.PodDisruptionBudget',
};
const PREFIX = 'io.k8s.api.';

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Omits parts that no check needs. References point to definitions.json. */
function trimmed(value: unknown, isPropertyMap = false): unknown {
  if (Array.isArray(value)) return value.map(one => trimmed(one));
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(
    ([name]) => isPropertyMap || !(name === 'description' || name === 'default' || name.startsWith('x-kubernetes-')),
  );
  const schema: Schema = Object.fromEntries(
    entries.map(([name, member]) => [name, trimmed(member, !isPropertyMap && (name === 'properties' || name === '$defs'))]),
  );
  if (!isPropertyMap && typeof schema.$ref === 'string') {
    schema.$ref = schema.$ref.replace(/^.*#\/\$defs\//, 'definitions.json#/definitions/');
  }
  return schema;
}

function referencedFrom(schema: unknown): string[] {
  return [...JSON.stringify(schema).matchAll(/definitions\.json#\/definitions\/([^"]+)/g)].map(([, name]) => name!);
}

/** Rejects members that the schema of a custom resource does not list, as `kubectl apply` with strict validation does. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (!isObject(schema)) return schema;
  const copy: Schema = Object.fromEntries(Object.entries(schema).map(([name, member]) => [name, closed(member)]));
  const isOpen = 'additionalProperties' in schema || schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (schema.type === 'object' && isObject(schema.properties) && !isOpen) copy.additionalProperties = false;
  return copy;
}

function write(name: string, schema: unknown): void {
  writeFileSync(new URL(`${name}.json`, import.meta.url), `${JSON.stringify(schema)}\n`);
}

const [folder, ...crds] = process.argv.slice(2);
if (folder === undefined || crds.length === 0) throw new Error(USAGE);
const all = trimmed(JSON.parse(readFileSync(join(folder, '_definitions.json'), 'utf8'))) as { $defs: Record<string, Schema> };
const definitions: Record<string, unknown> = {};
for (const [name, definition] of Object.entries(KINDS)) {
  const schema = all.$defs[PREFIX + definition];
  if (schema === undefined) throw new Error(`${folder} does not define ${definition}`);
  write(name, schema);
  const pending = referencedFrom(schema);
  for (let one = pending.pop(); one !== undefined; one = pending.pop()) {
    if (one in definitions) continue;
    definitions[one] = all.$defs[one];
    pending.push(...referencedFrom(definitions[one]));
  }
}
write('definitions', { definitions });
for (const path of crds) {
  const { spec } = parse(readFileSync(path, 'utf8'));
  for (const { name, schema, storage } of spec.versions) {
    if (!storage) continue;
    const { properties, ...rest } = schema.openAPIV3Schema;
    // The API server checks metadata itself; the schema of the resource leaves it open.
    const members = { ...(closed(properties) as Schema), metadata: { type: 'object' } };
    const closedSchema = { ...rest, properties: members, additionalProperties: false };
    write(`${spec.names.kind.toLowerCase()}-${spec.group.split('.')[0]}-${name}`, trimmed(closedSchema));
  }
}

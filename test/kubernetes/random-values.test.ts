import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { runs } from '../fuzz/fuzz-settings.ts';
import { allContainers, CHART, manifestsOf, podTemplates, schemaFaults, withoutKubeconform } from './rendered-chart.ts';

type Schema = {
  type?: string | string[];
  enum?: unknown[];
  pattern?: string;
  minLength?: number;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  patternProperties?: Record<string, Schema>;
  $ref?: string;
  $defs?: Record<string, Schema>;
};

/** Names that YAML reads as numbers or booleans unless they are quoted, and the longest name that Helm allows for a release. */
const NAMES = ['hopline', 'a', 'e5', '1e5', 'b64', 'on', 'null', 'my.release', `${'x'.repeat(52)}y`, `${'x'.repeat(39)}.y`];
const SPREAD = { maxSkew: 1, topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule' };
const CPU = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } };
const JWT = { issuer: 'https://a.example.com', audience: 'a', jwksUrl: 'https://a.example.com/keys' };
const RESOURCES = { requests: { cpu: '1', memory: '64Mi' } };

/** Settings of every service, and variables of other programs. */
const ANY_SETTINGS = {
  OTEL_A: fc.constantFrom('a', 7, 1e6, true),
  NODE_OPTIONS: fc.constantFrom('a', true),
  HOPLINE_LOOP_LAG_MS_MAX: fc.constantFrom('', 1e4, '60000'),
};

/** Values that the schema does not restrict although Kubernetes accepts only some of them. */
const OPEN: [path: RegExp, value: fc.Arbitrary<unknown>][] = [
  [/^settings$/, fc.record({ ...ANY_SETTINGS, HOPLINE_PREFIX: fc.constantFrom('a', 7, 1e6, true) }, { requiredKeys: [] })],
  [/\.settings$/, fc.record(ANY_SETTINGS, { requiredKeys: [] })],
  [
    /([lL]abels|[aA]nnotations|nodeSelector)$/,
    fc.dictionary(fc.constantFrom('a', 'a.b/c', 'app.kubernetes.io/part-of'), fc.constantFrom('', '1', 'on')),
  ],
  [
    /\.env$|^env$/,
    fc.constantFrom(
      [],
      [{ name: 'MORE', value: '1' }],
      [{ name: 'MORE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
    ),
  ],
  [/resources$/, fc.constantFrom({}, RESOURCES)],
  [/volumes$/, fc.constantFrom([], [{ name: 'more', emptyDir: {} }])],
  [/volumeMounts$/, fc.constant([])],
  [/sidecars$/, fc.constantFrom([], [{ name: 'more', image: 'more:1' }])],
  [/initContainers$/, fc.constantFrom([], [{ name: 'before', image: 'more:1' }])],
  [/topologySpreadConstraints$/, fc.constantFrom(null, [], [SPREAD])],
  [/pods\.spec$/, fc.constantFrom({}, { hostNetwork: false, schedulerName: 'mine' })],
  [/service\.spec$/, fc.constantFrom({}, { externalTrafficPolicy: 'Cluster' })],
  [/ecurityContext$/, fc.constantFrom({}, { runAsUser: 7 })],
  [/strategy$/, fc.constantFrom({}, { type: 'RollingUpdate' })],
  [/[bB]ehavior$/, fc.constantFrom({}, { scaleDown: { stabilizationWindowSeconds: 7 } })],
  [/autoscaling\.metrics$/, fc.constantFrom([], [{ type: 'Resource', resource: CPU }])],
  [/authenticationRef$/, fc.constantFrom({}, { name: 'mine' })],
  [/extraObjects$/, fc.constantFrom([], [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mine' } }])],
  [/(config|jetStreamConfig)$/, fc.constantFrom('', 'debug: true')],
  [/affinity$/, fc.constantFrom({}, { nodeAffinity: {} })],
  [/tolerations$/, fc.constantFrom([], [{ operator: 'Exists' }])],
  [/parentRefs$/, fc.constantFrom([], [{ name: 'edge' }])],
  [/pullSecrets$/, fc.constantFrom([], [{ name: 'pull' }])],
  [/(^|\.)from$|(^|\.)to$|(monitor|scrape|nats)From$|egressTo$/, fc.constantFrom([], [{ podSelector: {} }])],
  [/privateRanges$/, fc.constantFrom([], ['10.0.0.0/8'], ['10.0.0.0/8', 'fc00::/7'])],
  [
    /entry$/,
    fc.constantFrom<object>(
      { adapter: 'a2a', url: 'http://a/' },
      { adapter: 'recording', path: 'a "b": {{ c }}\n' },
      { adapter: 'module', path: 'a.ts', env: ['MORE', 'OTEL_A'] },
    ),
  ],
  [/hostnames$|furtherHosts$/, fc.constantFrom([], ['a.example.com', '*.example.com'])],
  [/[hH]ost$/, fc.constantFrom('a.example.com', '1e5.example')],
  [/clusterDomain$/, fc.constantFrom('cluster.local', '1e5', '1e5.corp')],
  [/interval$/, fc.constantFrom('30s', '1m')],
  [/schedule$/, fc.constantFrom('0 3 * * *', '@daily')],
  [/Override$/, fc.constantFrom('', '', '', ...NAMES.filter(name => /^[a-z]/.test(name)))],
  [/^tls\.(nats|clients)Secret$/, fc.constantFrom('', '', '', 'a')],
  [/restore$/, fc.constantFrom('', '', '', '', '1e5')],
  [/^nats\.(url|credentialsSecret|tlsSecret)$/, fc.constantFrom('', '', '', '', '', '', '', '', '', '', '', 'a')],
  [/^hopline$/, fc.constantFrom('hopline', 'my-hopline', 'x'.repeat(40))],
  [/^auth$/, fc.constantFrom({}, {}, { apiKeysSecret: 'a' }, JWT, { ...JWT, jwksUrl: '', jwksSecret: 'a' }, { issuer: 'a' })],
  [/autoscaling\.cpu$/, fc.constantFrom('600m', '1', '0.5')],
  [/prometheus$/, fc.constantFrom('http://a.example.com')],
  [/nats\.image\.tag$/, fc.constantFrom('1', 'a.b-c')],
  [/allowUnauthenticated$/, fc.integer({ min: 0, max: 4 }).map(chance => chance > 0)],
  [/nats\.clientCertificate$/, fc.integer({ min: 0, max: 9 }).map(chance => chance === 0)],
  [/relay\.replicas$/, fc.integer({ min: 0, max: 17 })],
  [/relay\.autoscaling\.max$/, fc.integer({ min: 10, max: 17 })],
  [/^layouts$/, fc.constantFrom([], [], [{ shards: 64, streamGroups: 4 }], [{ shards: 2, streamGroups: 3 }])],
  [/^shards$/, fc.option(fc.integer({ min: 16, max: 64 }))],
  [/url$|prometheus$/i, fc.constantFrom('', 'http://a.example.com')],
  [/repository$|registry$/, fc.constantFrom('a', 'a.example.com/b')],
  [/folder$|path$|profile$/, fc.constantFrom('/a', '1e5')],
  [/^global$/, fc.constant({})],
  // Most sets should render; these values are refused in combination with others.
  [/(autoscaling|keda)\.min$/, fc.integer({ min: 1, max: 11 })],
  [/(autoscaling|keda)\.max$/, fc.integer({ min: 10, max: 100 })],
  [/(keda|gateway|backup)\.enabled$/, fc.integer({ min: 0, max: 4 }).map(chance => chance === 0)],
  [/nats\.enabled$/, fc.integer({ min: 0, max: 19 }).map(chance => chance > 0)],
];

/** Values that the schema allows, each of which is omitted half of the time. */
function valuesOf(given: Schema, path = '', definitions = given.$defs ?? {}): fc.Arbitrary<unknown> {
  const schema = given.$ref === undefined ? given : definitions[given.$ref.replace('#/$defs/', '')]!;
  const open = OPEN.find(([pattern]) => pattern.test(path));
  if (open !== undefined) return open[1];
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.properties !== undefined) {
    const members = Object.entries(schema.properties).map(([name, member]) => [
      name,
      valuesOf(member, path === '' ? name : `${path}.${name}`, definitions),
    ]);
    const always = ['entry', 'allowUnauthenticated'];
    const required = path === 'agents.item' ? ['name', 'entry'] : always.filter(name => name in schema.properties!);
    return fc.record<Record<string, unknown>>(Object.fromEntries(members), { requiredKeys: required });
  }
  if (path === 'agents') {
    const list = fc.uniqueArray(valuesOf(schema.items!, 'agents.item', definitions), { maxLength: 2, selector: nameOf });
    const withoutName = ({ name: _name, ...agent }: { name?: unknown }) => agent;
    return fc.oneof(
      list,
      list.map(agents => Object.fromEntries(agents.map(agent => [nameOf(agent), withoutName(agent as object)]))),
    );
  }
  const [type, ...others] = [schema.type ?? 'object'].flat();
  const value = ofType(schema, type!, path, definitions);
  return others.includes('null') ? fc.option(value) : value;
}

function ofType(schema: Schema, type: string, path: string, definitions: Record<string, Schema>): fc.Arbitrary<unknown> {
  switch (type) {
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: schema.minimum ?? 0, max: schema.maximum ?? 2_000_000_000 });
    case 'string':
      if (schema.pattern !== undefined) return fc.stringMatching(new RegExp(schema.pattern));
      return fc.constantFrom(...(schema.minLength === undefined ? [''] : []), ...NAMES);
    case 'array':
      return fc.uniqueArray(valuesOf(schema.items!, path, definitions), { maxLength: 2, selector: nameOf });
    default:
      throw new Error(`${path}: give it values in OPEN`);
  }
}

const nameOf = (item: unknown) => (item as { name?: unknown }).name;

const LABEL = /^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/;
const SERVICE_NAME = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Checks that the schemas of Kubernetes omit. */
function checkNames(text: string): void {
  const manifests = manifestsOf(text);
  const ids = manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
  assert.equal(new Set(ids).size, ids.length, `two of one name: ${ids}`);
  for (const { kind, metadata } of manifests) {
    if (kind === 'Service') assert.match(metadata.name, SERVICE_NAME);
    // The controllers add eleven characters and put the result into a label.
    if (kind === 'StatefulSet' || kind === 'CronJob') assert.ok(metadata.name.length <= 52, metadata.name);
  }
  for (const { metadata } of manifests)
    for (const [label, value] of Object.entries(metadata.labels ?? {})) assert.match(value, LABEL, label);
  for (const { metadata, spec } of podTemplates(manifests)) {
    for (const [label, value] of Object.entries(metadata.labels ?? {})) assert.match(value, LABEL, label);
    const volumes = (spec.volumes ?? []).map(({ name }) => name);
    for (const { env = [], ports = [], volumeMounts = [] } of allContainers(spec)) {
      const names = env.map(({ name }) => name);
      assert.equal(new Set(names).size, names.length, `twice in ${names}`);
      for (const { name, value } of env) assert.doesNotMatch(value ?? '', /^\d(\.\d+)?e\+/, name);
      assert.equal(new Set(ports.map(({ containerPort }) => containerPort)).size, ports.length, JSON.stringify(ports));
      for (const { name } of volumeMounts) assert.ok(name === 'data' || volumes.includes(name), name);
    }
  }
}

for (const chart of ['hopline', 'hopline-agent']) {
  test(`chart ${chart}: values that the schema allows render objects that Kubernetes accepts, or an error sentence`, {
    skip: withoutKubeconform,
  }, () => {
    const path = join(CHART, '..', chart);
    const schema = JSON.parse(readFileSync(join(path, 'values.schema.json'), 'utf8')) as Schema;
    const folder = mkdtempSync(join(tmpdir(), 'hopline-values-'));
    const file = join(folder, 'values.json');
    let rendered = 0;
    try {
      fc.assert(
        fc.property(fc.constantFrom(...NAMES), valuesOf(schema), (release, values) => {
          writeFileSync(file, JSON.stringify(values));
          const args = ['template', release, path, '--kube-version', '1.34.0', '--values', file];
          const { status, stdout, stderr } = spawnSync('helm', args, { encoding: 'utf8', maxBuffer: 1 << 26 });
          // The error comes from `fail` or `required`, not from a broken template.
          if (status !== 0) return assert.match(stderr, /^Error: execution error at \(/m);
          rendered += 1;
          assert.equal(schemaFaults(stdout), '');
          checkNames(stdout);
        }),
        // Bounded by time, because each run starts two programs.
        { ...runs(25), markInterruptAsFailure: false },
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
    assert.ok(rendered > 0, 'not every set of values is refused');
  });
}

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments } from 'yaml';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHART = join(ROOT, 'infra/helm/hopline');
const hasHelm = spawnSync('helm', ['version', '--short']).status === 0;
const skip = !hasHelm && 'helm is not on PATH';

type Container = {
  image: string;
  env?: { name: string; value?: string }[];
  securityContext?: Record<string, unknown>;
  resources?: { requests?: unknown; limits?: unknown };
};
type PodSpec = {
  containers: Container[];
  securityContext?: Record<string, unknown>;
  automountServiceAccountToken?: boolean;
  terminationGracePeriodSeconds?: number;
  volumes?: Record<string, unknown>[];
};
type Manifest = {
  kind: string;
  metadata: { name: string };
  spec: PodSpec & {
    replicas?: number;
    selector?: { matchLabels: unknown };
    template?: { spec: PodSpec };
    ports?: { port: number }[];
  };
};

/** Values that turn on what is off by default. */
const EVERYTHING = [
  'httpIngress.enabled=true',
  'podMonitor.enabled=true',
  'prometheusRule.enabled=true',
  'dashboards.enabled=true',
  'relay.autoscaling.enabled=true',
  'pods.priorityClassName=high',
  'ingress.publicUrl=https://a2a.example.com/',
];
const EXTERNAL = ['nats.enabled=false', 'nats.url=tls://nats:4222', 'nats.credentialsSecret=creds', 'nats.tlsSecret=tls'];
const MATRIX: Record<string, readonly string[]> = {
  defaults: [],
  everything: EVERYTHING,
  'another NATS': EXTERNAL,
  'one NATS node': ['nats.replicas=1'],
  'no agents': ['agents=null'],
  'Gateway API': ['gateway.enabled=true', 'gateway.parentRefs[0].name=edge'],
  OpenShift: ['pods.uid=null'],
};

function template(values: readonly string[]): string[] {
  return ['template', 'hopline', CHART, ...values.flatMap(value => ['--set', value])];
}

function render(values: readonly string[]): Manifest[] {
  const text = execFileSync('helm', template(values), { encoding: 'utf8', maxBuffer: 1 << 26 });
  return parseAllDocuments(text)
    .map(document => document.toJS() as Manifest | null)
    .filter(manifest => manifest !== null);
}

function rejection(...values: string[]): string {
  const { status, stderr } = spawnSync('helm', template(values), { encoding: 'utf8' });
  assert.notEqual(status, 0, 'the values are rejected');
  return stderr;
}

function podSpecs(manifests: readonly Manifest[]): PodSpec[] {
  return manifests.flatMap(({ kind, spec }) => (kind === 'Pod' ? [spec] : spec?.template ? [spec.template.spec] : []));
}

for (const [name, values] of Object.entries(MATRIX)) {
  test(`chart, ${name}: every pod meets the restricted Pod Security Standard`, { skip }, () => {
    const specs = podSpecs(render(values));
    assert.ok(specs.length >= 4);
    for (const { containers, securityContext, automountServiceAccountToken, volumes = [] } of specs) {
      assert.equal(securityContext?.runAsNonRoot, true);
      assert.deepEqual(securityContext?.seccompProfile, { type: 'RuntimeDefault' });
      assert.equal(automountServiceAccountToken, false);
      for (const volume of volumes) assert.ok(['emptyDir', 'configMap', 'secret'].some(type => type in volume));
      for (const container of containers) {
        const { allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities } = container.securityContext ?? {};
        assert.deepEqual(
          { allowPrivilegeEscalation, readOnlyRootFilesystem },
          { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
        );
        assert.deepEqual(capabilities, { drop: ['ALL'] });
        assert.ok(container.resources?.requests && container.resources.limits);
        assert.match(container.image, /:\d+\.\d+\.\d+|@sha256:/, 'no floating tag');
      }
    }
  });

  test(`chart, ${name}: names of objects and variables are unique`, { skip }, () => {
    const manifests = render(values);
    const ids = manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
    assert.equal(new Set(ids).size, ids.length);
    // Server-side apply rejects a list with the same key twice.
    for (const { containers } of podSpecs(manifests)) {
      const variables = containers.flatMap(({ env = [] }) => env.map(variable => variable.name));
      assert.equal(new Set(variables).size, variables.length, `twice in ${variables}`);
    }
  });
}

test('the grace period of every service covers the wait for its endpoints, its drain and a margin', { skip }, () => {
  const deployments = render(['pods.preStopSeconds=7', 'pods.drainSeconds=33']).filter(({ kind }) => kind === 'Deployment');
  for (const { spec } of deployments) assert.equal(spec.template!.spec.terminationGracePeriodSeconds, 50);
});

test('chart and code agree: name and tag of the image, version of nats-server, settings', { skip }, () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'));
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  const pins = JSON.parse(readFileSync(join(ROOT, 'infra/local/bootstrap/pins.json'), 'utf8'));
  const specs = podSpecs(render([]));
  const images = new Set(specs.flatMap(({ containers }) => containers.map(({ image }) => image)));
  assert.deepEqual([...images].sort(), [`hopline:${version}`, `nats:${pins.natsServer.goVersion}`]);
  const settings = readFileSync(join(ROOT, 'docs/reference/settings.md'), 'utf8');
  const variables = new Set(specs.flatMap(({ containers }) => containers.flatMap(({ env = [] }) => env.map(({ name }) => name))));
  for (const name of variables) {
    if (name.startsWith('HOPLINE_')) assert.ok(settings.includes(`\`${name}\``), `${name} is no setting`);
  }
});

test('an autoscaled service has no replica count, which would undo the scaling at every upgrade', { skip }, () => {
  const manifests = render(['relay.autoscaling.enabled=true']);
  const relay = manifests.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'hopline-relay');
  assert.equal(relay?.spec.replicas, undefined);
  assert.ok(manifests.some(({ kind, metadata }) => kind === 'HorizontalPodAutoscaler' && metadata.name === 'hopline-relay'));
});

test('wrong and unknown values are rejected by name', { skip }, () => {
  assert.match(rejection('ingres.replicas=2'), /ingres/);
  assert.match(rejection('relay.replicas=many'), /replicas/);
  assert.match(rejection('nats.replicas=2'), /replicas/);
  assert.match(rejection('nats.storage.size=10GB'), /size/);
  assert.match(rejection('settings.lower=1'), /lower/);
  assert.match(rejection('agents[0].name=Not_A_Name', 'agents[0].entry.adapter=a2a'), /name/);
  assert.match(rejection('nats.enabled=false'), /nats\.url is required/);
  assert.match(rejection('httpIngress.enabled=true', 'gateway.enabled=true'), /choose one/);
});

test('the service for clients has the fixed name and port', { skip }, () => {
  const service = render([]).find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'hopline-ingress');
  assert.equal(service?.spec.ports?.[0]?.port, 8000);
});

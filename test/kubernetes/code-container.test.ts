import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeEnvironment } from '../../packages/agent-code/src/code-environment.ts';
import { CHART, type Container, type PodSpec, podSpecs, ROOT, render, renderChart, skip, template } from './rendered-chart.ts';

const AGENT_CHART = join(ROOT, 'infra/helm/hopline-agent');
const SOCKET = '/var/run/hopline/code/socket';

/** The values of an agent whose entry names two variables, in the form of each chart. */
const CLERK = [
  'entry.adapter=module',
  'entry.path=clerk.ts',
  'entry.env={DATABASE_URL,REGION}',
  'settings.REGION=7',
  'settings.HOPLINE_SLOTS=3',
  'settings.TZ=UTC',
  'env[0].name=DATABASE_URL',
  'env[0].valueFrom.secretKeyRef.name=clerk',
  'env[0].valueFrom.secretKeyRef.key=url',
  'env[1].name=MODEL_KEY',
  'env[1].value=x',
  'volumes[0].name=data',
  'volumeMounts[0].name=data',
  'volumeMounts[0].mountPath=/data',
];
const CHARTS: Record<string, (values: readonly string[]) => PodSpec> = {
  hopline: values => podOf(render(['agents[0].name=clerk', ...values.map(value => `agents[0].${value}`)])),
  'hopline-agent': values => podOf(renderChart(AGENT_CHART, ['name=clerk', ...values])),
};

function podOf(manifests: ReturnType<typeof render>): PodSpec {
  return podSpecs(manifests.filter(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-agent-clerk')))[0]!;
}

function containersOf({ initContainers: [code] = [], containers: [subAgent] }: PodSpec): {
  code?: Container;
  subAgent: Container;
} {
  return { ...(code && { code }), subAgent: subAgent! };
}

const namesOf = ({ env = [] }: Container) => env.map(({ name }) => name).sort();
const settingOf = ({ env = [] }: Container, name: string) => env.find(one => one.name === name)?.value;

for (const [chart, pod] of Object.entries(CHARTS)) {
  test(`chart ${chart}: code runs in a container that has only the variables of its entry`, { skip }, () => {
    const { code, subAgent } = containersOf(pod(CLERK));
    assert.deepEqual(code!.args, ['code', SOCKET, 'DATABASE_URL', 'REGION']);
    assert.deepEqual(namesOf(code!), ['DATABASE_URL', 'NODE_OPTIONS', 'REGION', 'TZ']);
    assert.equal(settingOf(code!, 'REGION'), '7');
    const inSubAgent = namesOf(subAgent);
    assert.deepEqual(
      [inSubAgent.includes('DATABASE_URL'), inSubAgent.includes('REGION')],
      [false, false],
      'only the code has them',
    );
    for (const name of ['MODEL_KEY', 'NATS_PASSWORD', 'HOPLINE_SLOTS', 'TZ']) assert.ok(inSubAgent.includes(name), name);
    assert.equal(settingOf(subAgent, 'HOPLINE_CODE_SOCKET'), SOCKET);
    assert.equal(code!.image, subAgent.image);
  });

  test(`chart ${chart}: the two containers share the folder of the socket, and nothing else`, { skip }, () => {
    const spec = pod(CLERK);
    const { code, subAgent } = containersOf(spec);
    const [mounts, own] = [code!, subAgent].map(({ volumeMounts = [] }) => new Map(volumeMounts.map(one => [one.name, one])));
    const shared = [...mounts!.keys()].filter(name => own!.has(name));
    assert.deepEqual(shared, ['code']);
    assert.equal(own!.get('code')!.readOnly, true);
    assert.equal(mounts!.get('data')!.mountPath, '/data');
    for (const { name, secret } of spec.volumes!) assert.equal(secret, undefined, name);
    assert.deepEqual(
      spec.volumes!.find(({ name }) => name === 'code'),
      { name: 'code', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
    );
    assert.equal((spec as { shareProcessNamespace?: boolean }).shareProcessNamespace, undefined);
    assert.notEqual(code!.securityContext!.runAsUser, spec.securityContext!.runAsUser);
  });

  test(`chart ${chart}: the code ends after its sub-agent, because it is a sidecar of Kubernetes`, { skip }, () => {
    assert.equal(containersOf(pod(CLERK)).code!.restartPolicy, 'Always');
  });

  test(`chart ${chart}: user, resources and heap of the code have values`, { skip }, () => {
    const values = ['code.uid=70000', 'code.heapPercent=30', 'code.resources.limits.memory=2Gi', 'resources.limits.memory=1Gi'];
    const { code, subAgent } = containersOf(pod([...CLERK, ...values]));
    assert.equal(code!.securityContext!.runAsUser, 70_000);
    const ofPods = containersOf(pod([...CLERK, ...values, 'pods.containerSecurityContext.runAsUser=5']));
    const users = [ofPods.code!, ofPods.subAgent].map(({ securityContext }) => securityContext!.runAsUser);
    assert.deepEqual(users, [70_000, 5], 'a user for all containers leaves the code its own');
    assert.equal(settingOf(code!, 'NODE_OPTIONS'), '--max-old-space-size-percentage=30');
    assert.deepEqual(
      [code, subAgent].map(one => (one!.resources!.limits as { memory: string }).memory),
      ['2Gi', '1Gi'],
    );
  });

  test(`chart ${chart}: one value runs the code in the container of the sub-agent`, { skip }, () => {
    const { code, subAgent } = containersOf(pod([...CLERK, 'code.separate=false']));
    assert.equal(code, undefined);
    assert.deepEqual([settingOf(subAgent, 'HOPLINE_CODE_USER'), settingOf(subAgent, 'HOPLINE_CODE_SOCKET')], ['same', undefined]);
    assert.ok(namesOf(subAgent).includes('DATABASE_URL'));
    assert.deepEqual(subAgent.volumeMounts!.map(({ name }) => name).sort(), ['data', 'tmp']);
  });
}

/** Entries that run code, and entries that do not. */
const ENTRIES: [runs: boolean, values: string[]][] = [
  [true, ['entry.adapter=module', 'entry.path=a.ts']],
  [true, ['entry.adapter=langgraph', 'entry.module=a.ts']],
  [false, ['entry.adapter=langgraph', 'entry.url=http://a/', 'entry.assistant=a']],
  [true, ['entry.adapter=mcp', 'entry.command=node', 'entry.env.KEY=x']],
  [false, ['entry.adapter=mcp', 'entry.url=http://a/']],
  [false, ['entry.adapter=a2a', 'entry.url=http://a/']],
  [false, ['entry.adapter=model', 'entry.model=m']],
  [false, ['entry.adapter=model', 'entry.model=m', 'entry.mcp[0].url=http://a/']],
  [true, ['entry.adapter=model', 'entry.model=m', 'entry.mcp[0].url=http://a/', 'entry.mcp[1].command=node']],
  [false, ['entry.adapter=recording', 'entry.path=a.jsonl']],
];
test('an agent has a container for its code if its entry runs code', { skip }, () => {
  for (const [runs, values] of ENTRIES) {
    const { code, subAgent } = containersOf(CHARTS['hopline-agent']!(values));
    assert.equal(code !== undefined, runs, values.join());
    assert.equal(namesOf(subAgent).includes('HOPLINE_CODE_SOCKET'), runs, values.join());
    if (runs) assert.deepEqual(code!.args, ['code', SOCKET]);
  }
});

test('OpenTelemetry variables that the entry names also configure the sub-agent', { skip }, () => {
  const endpoint = 'settings.OTEL_EXPORTER_OTLP_ENDPOINT=http://otel:4318';
  const { code, subAgent } = containersOf(
    CHARTS['hopline-agent']!(['entry.adapter=module', 'entry.path=a.ts', 'entry.env={OTEL_EXPORTER_OTLP_ENDPOINT}', endpoint]),
  );
  for (const one of [code!, subAgent]) assert.equal(settingOf(one, 'OTEL_EXPORTER_OTLP_ENDPOINT'), 'http://otel:4318');
});

test('chart and code agree on the variables that any program may need', () => {
  const text = readFileSync(join(CHART, 'templates/_code.tpl'), 'utf8');
  const [, list] = /\$system := list ([^-]*?) -}}/.exec(text)!;
  const names = [...list!.matchAll(/"(\w+)"/g)].map(([, name]) => name!);
  const everything = Object.fromEntries([...names, 'LC_ALL', 'NATS_URL', 'NODE_OPTIONS', 'HTTPS_PROXY'].map(name => [name, 'x']));
  assert.deepEqual(Object.keys(codeEnvironment(everything, [], undefined)).sort(), [...names, 'LC_ALL'].sort());
});

test('if the chart sets no user (OpenShift), the platform also chooses the user of the code', { skip }, () => {
  const { code } = containersOf(CHARTS['hopline-agent']!([...CLERK, 'pods.uid=null']));
  assert.deepEqual(
    Object.keys(code!.securityContext!).filter(name => name.startsWith('runAs')),
    [],
  );
});

test('settings of the code container that the chart itself makes are refused, and the error names the value to set', {
  skip,
}, () => {
  const rejected = (value: string) => {
    const { status, stderr } = spawnSync('helm', template(['name=clerk', ...CLERK, value], AGENT_CHART), { encoding: 'utf8' });
    assert.notEqual(status, 0, value);
    return stderr;
  };
  for (const name of ['HOPLINE_CODE_SOCKET', 'HOPLINE_CODE_USER']) {
    assert.match(
      rejected(`settings.${name}=/given`),
      new RegExp(`settings\\.${name} \\(agent-clerk\\): set agents\\.NAME\\.code\\.separate`),
    );
    assert.match(rejected(`env[2].name=${name}`), new RegExp(`env: ${name} \\(agent-clerk\\): set code\\.separate instead`));
  }
});

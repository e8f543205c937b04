import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Manifest, podTemplates, ROOT, render, renderChart, skip } from './rendered-chart.ts';

type Peer = {
  podSelector?: Selector;
  namespaceSelector?: Selector;
  ipBlock?: { cidr: string; except?: string[] };
};
type Selector = {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values: string[] }[];
};
type Rule = { from?: Peer[]; to?: Peer[]; ports?: { port: string | number; protocol?: string }[] };
type Policy = { podSelector: Selector; policyTypes: string[]; ingress?: Rule[]; egress?: Rule[] };

const AGENT_CHART = join(ROOT, 'infra/helm/hopline-agent');
const COMPONENT = 'app.kubernetes.io/component';
const EVERY_POD = ['console.enabled=true', 'backup.enabled=true', 'backup.existingClaim=backups', 'nats.metrics.enabled=true'];

const policiesOf = (manifests: readonly Manifest[]): Record<string, Policy> =>
  Object.fromEntries(
    manifests
      .filter(({ kind }) => kind === 'NetworkPolicy')
      .map(({ metadata, spec }) => [metadata.labels![COMPONENT], spec as unknown as Policy]),
  );
const policies = (...values: string[]) => policiesOf(render(values));
const ofAgent = (...values: string[]): Policy =>
  Object.values(policiesOf(renderChart(AGENT_CHART, ['name=clerk', 'entry.adapter=module', 'entry.path=a.ts', ...values])))[0]!;

const DNS = [53, 5353].flatMap(port => ['UDP', 'TCP'].map(protocol => ({ port, protocol })));
/** Rules of egress but that for DNS, which is the first. */
const egressOf = ({ egress = [] }: Policy): Rule[] => {
  assert.deepEqual(egress[0], { ports: DNS });
  return egress.slice(1);
};
const pods = (component: string): Peer => ({
  podSelector: {
    matchLabels: { [COMPONENT]: component, 'app.kubernetes.io/instance': 'hopline', 'app.kubernetes.io/name': 'hopline' },
  },
});
const TO_NATS: Rule = { to: [pods('nats')], ports: [{ port: 4222 }] };
const PRIVATE = ['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'];
const TO_PUBLIC: Rule = {
  to: [{ ipBlock: { cidr: '0.0.0.0/0', except: PRIVATE } }, { ipBlock: { cidr: '::/0', except: ['fc00::/7', 'fe80::/10'] } }],
};
const SCRAPED: Rule = {
  from: [{ namespaceSelector: {}, podSelector: { matchLabels: { 'app.kubernetes.io/name': 'prometheus' } } }],
  ports: [{ port: 'probes' }],
};

test('a NetworkPolicy selects every pod of the charts, in both directions', { skip }, () => {
  const manifests = render(EVERY_POD);
  const all = policiesOf(manifests);
  const components = podTemplates(manifests).map(({ metadata }) => metadata.labels![COMPONENT]!);
  assert.deepEqual([...new Set(components)].sort(), Object.keys(all).sort());
  for (const [component, { podSelector, policyTypes }] of Object.entries(all)) {
    assert.deepEqual(podSelector, pods(component).podSelector);
    assert.deepEqual(policyTypes, ['Ingress', 'Egress']);
  }
  assert.deepEqual(ofAgent().policyTypes, ['Ingress', 'Egress']);
  assert.deepEqual(policies('networkPolicy.enabled=false', ...EVERY_POD), {});
});

test('services reach NATS and DNS, the notifier and agents also public addresses, and the console only ingress', { skip }, () => {
  const all = policies(...EVERY_POD);
  for (const component of ['ingress', 'relay', 'supervisor', 'backup'])
    assert.deepEqual(egressOf(all[component]!), [TO_NATS], component);
  for (const component of ['notifier', 'agent-guide', 'agent-files'])
    assert.deepEqual(egressOf(all[component]!), [TO_NATS, TO_PUBLIC], component);
  for (const component of ['console', 'test'])
    assert.deepEqual(egressOf(all[component]!), [{ to: [pods('ingress')], ports: [{ port: 8000 }] }], component);
  assert.deepEqual(egressOf(all.nats!), [{ to: [pods('nats')], ports: [{ port: 6222 }] }]);
});

test('only scrapers reach relays, supervisors, notifiers and agents; callers reach ingress and the console', { skip }, () => {
  const all = policies(...EVERY_POD);
  for (const component of ['relay', 'supervisor', 'notifier', 'agent-guide'])
    assert.deepEqual(all[component]!.ingress, [SCRAPED], component);
  assert.deepEqual(all.ingress!.ingress, [{ ports: [{ port: 'http' }, { port: 'grpc' }] }, SCRAPED]);
  assert.deepEqual(all.console!.ingress, [{ ports: [{ port: 'http' }] }, SCRAPED]);
  for (const component of ['backup', 'test']) assert.equal(all[component]!.ingress, undefined, component);
  const none = policies('networkPolicy.scrapeFrom=null');
  assert.equal(none.relay!.ingress, undefined);
  const from = [{ namespaceSelector: { matchLabels: { name: 'edge' } } }];
  const edge = 'from[0].namespaceSelector.matchLabels.name=edge';
  const limited = policies(`ingress.${edge}`, 'console.enabled=true', `console.${edge}`);
  assert.deepEqual(limited.ingress!.ingress![0]!.from, [...from, pods('console'), pods('test')]);
  assert.deepEqual(limited.console!.ingress![0]!.from, from);
});

test('NATS is reached by the services that have a login, by its nodes, and on other ports by the peers in a value', {
  skip,
}, () => {
  const rules = (...values: string[]) => policies(...values).nats!.ingress!;
  const at = (found: readonly Rule[], port: string) => found.filter(({ ports = [] }) => ports.some(one => one.port === port));
  const [clients] = at(rules(...EVERY_POD), 'client');
  const [own, released] = clients!.from!;
  assert.deepEqual(own!.podSelector!.matchExpressions, [
    {
      key: COMPONENT,
      operator: 'In',
      values: ['backup', 'ingress', 'notifier', 'relay', 'supervisor', 'agent-guide', 'agent-files'],
    },
  ]);
  assert.deepEqual(released, { podSelector: { matchLabels: { 'app.kubernetes.io/part-of': 'hopline' } } });
  assert.equal(clients!.from!.length, 2);
  const further = at(rules('networkPolicy.natsFrom[0].namespaceSelector.matchLabels.team=a'), 'client')[0]!.from!;
  assert.deepEqual(further[2], { namespaceSelector: { matchLabels: { team: 'a' } } });
  assert.deepEqual(at(rules(), 'cluster'), [{ from: [pods('nats')], ports: [{ port: 'cluster' }] }]);
  assert.deepEqual(at(rules('nats.metrics.enabled=true'), 'monitor'), []);
  assert.deepEqual(at(rules('nats.metrics.enabled=true'), 'metrics'), [{ ...SCRAPED, ports: [{ port: 'metrics' }] }]);
  assert.deepEqual(at(rules(), 'metrics'), []);
  const from = [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }];
  const allowed = rules('networkPolicy.monitorFrom[0].namespaceSelector.matchLabels.name=monitoring');
  assert.deepEqual(at(allowed, 'monitor'), [{ from, ports: [{ port: 'monitor' }] }]);
});

test('a server named in settings or in an entry can be reached, and no other server of that kind', { skip }, () => {
  const namespace = (name: string): Peer => ({ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } });
  const otlp = (url: string) => egressOf(policies(`settings.OTEL_EXPORTER_OTLP_ENDPOINT=${url}`).relay!).slice(0, -1);
  const ports = [{ port: 4318 }];
  assert.deepEqual(otlp('http://otel:4318'), [{ to: [{ podSelector: {} }], ports }]);
  assert.deepEqual(otlp('http://otel.watch.svc:4318/v1'), [{ to: [namespace('watch')], ports }]);
  assert.deepEqual(otlp('http://otel.watch:4318'), [{ to: [namespace('watch')], ports }, { ports }]);
  assert.deepEqual(otlp('https://otel.example.com'), [{ ports: [{ port: 443 }] }]);
  assert.deepEqual(otlp('http://[fd00::1]:4318'), [{ to: [{ ipBlock: { cidr: 'fd00::1/128' } }], ports }]);
  assert.deepEqual(
    egressOf(
      policies('relay.env[0].name=OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'relay.env[0].value=http://10.1.2.3:4318').relay!,
    )[0],
    {
      to: [{ ipBlock: { cidr: '10.1.2.3/32' } }],
      ports,
    },
  );

  const keys = ['auth.issuer=https://i/', 'auth.audience=a', 'auth.jwksUrl=https://login.example.com/jwks'];
  assert.deepEqual(egressOf(policies(...keys).ingress!), [TO_NATS, { ports: [{ port: 443 }] }]);
  assert.deepEqual(egressOf(policies(...keys).relay!), [TO_NATS]);
  const planner = ['supervisor.settings.HOPLINE_PLANNER=model', 'supervisor.settings.HOPLINE_MODEL=m'];
  assert.deepEqual(egressOf(policies(...planner).supervisor!)[1]!.ports, [{ port: 443 }]);
  const inside = 'supervisor.settings.OPENAI_BASE_URL=http://vllm.models.svc/v1';
  assert.deepEqual(egressOf(policies(...planner, inside).supervisor!)[1], { to: [namespace('models')] });

  const agent = (...values: string[]) =>
    egressOf(policies('agents[0].name=a', ...values.map(value => `agents[0].${value}`))['agent-a']!);
  const a2a = (url: string, ...values: string[]) => agent('entry.adapter=a2a', `entry.url=${url}`, ...values);
  assert.deepEqual(a2a('http://weather.agents:9000/'), [TO_NATS, { to: [namespace('agents')] }, TO_PUBLIC]);
  assert.deepEqual(a2a('https://a2a.example.com/'), [TO_NATS, TO_PUBLIC]);
  assert.deepEqual(a2a('http://localhost:9000/'), [TO_NATS, TO_PUBLIC]);
  assert.deepEqual(a2a('https://a2a.example.com/', 'internet=false', 'to[0].ipBlock.cidr=10.0.0.0/8'), [
    TO_NATS,
    { to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] },
  ]);
  const model = ['entry.adapter=model', 'entry.model=m', 'entry.mcp[0].url=http://tools.t.svc/'];
  assert.deepEqual(agent(...model, 'settings.OPENAI_BASE_URL=http://vllm/'), [
    TO_NATS,
    { to: [namespace('t')] },
    { to: [{ podSelector: {} }] },
    TO_PUBLIC,
  ]);
});

test('values add peers for every pod and for the notifier, and define which addresses are public', { skip }, () => {
  const proxy = [{ podSelector: { matchLabels: { app: 'proxy' } } }];
  const all = policies('networkPolicy.egressTo[0].podSelector.matchLabels.app=proxy', 'notifier.to[0].ipBlock.cidr=10.9.0.0/16');
  assert.deepEqual(egressOf(all.relay!), [{ to: proxy }, TO_NATS]);
  assert.deepEqual(egressOf(all.notifier!), [{ to: proxy }, TO_NATS, { to: [{ ipBlock: { cidr: '10.9.0.0/16' } }] }, TO_PUBLIC]);
  const v4 = egressOf(policies('networkPolicy.privateRanges={10.0.0.0/8,20.0.0.0/8}').notifier!)[1];
  assert.deepEqual(v4, { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8', '20.0.0.0/8'] } }] });
  assert.deepEqual(
    egressOf(policies('networkPolicy.privateRanges=null').notifier!),
    [TO_NATS],
    'a rule without peers would permit all',
  );
});

test('an agent of the chart hopline-agent reaches the NATS of its Hopline, or the port of the NATS that it names', {
  skip,
}, () => {
  const [nats, ...others] = egressOf(ofAgent());
  assert.deepEqual(nats, { to: [{ podSelector: { matchLabels: { [COMPONENT]: 'nats' } } }], ports: [{ port: 4222 }] });
  assert.deepEqual(others, [TO_PUBLIC]);
  const urls = 'nats.url=tls://n0.example.com:4443\\,nats://n1.example.com';
  assert.deepEqual(egressOf(ofAgent(urls, 'internet=false')), [{ ports: [{ port: 4443 }, { port: 4222 }] }]);
  assert.deepEqual(ofAgent().ingress, [SCRAPED]);
  const exposed = ofAgent('expose=true', 'from[0].podSelector.matchLabels.app=caller').ingress;
  assert.deepEqual(exposed, [
    { from: [{ podSelector: { matchLabels: { app: 'caller' } } }], ports: [{ port: 'http' }] },
    SCRAPED,
  ]);
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { convertValues } from './convert-values.ts';

const BEFORE = `# Production
pods:
  serviceAccountName: apps
  preStopSeconds: 30 # as the load balancer needs
agents:
  # The weather.
  - name: weather
    serviceAccountName: weather
    entry: { adapter: a2a, url: http://weather }
  - name: files
    entry: { adapter: a2a, url: http://files }
nats:
  affinity: { podAntiAffinity: {} }
  monitorUrl: http://nats:8222
  existingSecret: nats
relay:
  autoscaling: { enabled: true, cpuPercent: 75 }
ingress:
  settings:
    HOPLINE_AUTH_ISSUER: https://issuer
    HOPLINE_AUTH_JWKS_FILE: /keys
`;

test('values of an earlier chart are converted with their comments, and decisions left to a person are named', () => {
  const { text, notes } = convertValues(BEFORE);
  assert.deepEqual(parse(text), {
    pods: { serviceAccount: { name: 'apps' } },
    agents: {
      weather: { entry: { adapter: 'a2a', url: 'http://weather' }, pods: { serviceAccount: { name: 'weather' } } },
      files: { entry: { adapter: 'a2a', url: 'http://files' } },
    },
    nats: { existingSecret: 'nats', pods: { affinity: { podAntiAffinity: {} } } },
    relay: { autoscaling: { enabled: true } },
    ingress: { pods: { preStopSeconds: 30 } },
    auth: { issuer: 'https://issuer' },
  });
  for (const comment of ['# Production', '# as the load balancer needs', '# The weather.'])
    assert.ok(text.includes(comment), text);
  const named = ['nats.monitorUrl', 'relay.autoscaling.cpuPercent', 'HOPLINE_AUTH_JWKS_FILE', 'agent-NAME'];
  assert.equal(notes.length, named.length, notes.join('\n'));
  for (const word of named)
    assert.ok(
      notes.some(note => note.includes(word)),
      word,
    );
});

test("converting twice changes nothing more; of an old and a current name, the current one's value is kept", () => {
  const { text } = convertValues(BEFORE);
  assert.equal(convertValues(text).text, text);
  const both = convertValues('pods: { serviceAccountName: old, serviceAccount: { name: new } }\nauth: {}\n');
  assert.deepEqual(parse(both.text), { pods: { serviceAccount: { name: 'new' } }, auth: {} });
  assert.match(both.notes.join('\n'), /serviceAccountName is dropped/);
});

test('an empty list of agents becomes demoAgents: false; an agent without a name, and two agents with the same name, are errors', () => {
  for (const none of ['agents: []\nauth: {}\n', 'agents: null\nauth: {}\n'])
    assert.deepEqual(parse(convertValues(none).text), { auth: {}, demoAgents: false });
  assert.throws(() => convertValues('agents: [{ entry: {} }]'), /has no name/);
  assert.throws(() => convertValues('agents: [{ name: a }, { name: a }]'), /two agents have the name a/);
  assert.throws(() => convertValues('a: [}'), /not YAML/);
});

test('every value of the table in upgrading.md is converted or named', () => {
  const guide = readFileSync(new URL('../../docs/guides/upgrading.md', import.meta.url), 'utf8');
  const table = guide.slice(guide.indexOf('| Since | Before | Now |')).split('\n\n')[0]!;
  const source = readFileSync(new URL('convert-values.ts', import.meta.url), 'utf8');
  const words = [
    'serviceAccountName',
    'affinity',
    'cpuPercent',
    'monitorUrl',
    'preStopSeconds',
    'userPerAgent',
    'HOPLINE_AUTH_',
    'demoAgents',
  ];
  for (const word of words) assert.ok(table.includes(word) && source.includes(word), word);
});

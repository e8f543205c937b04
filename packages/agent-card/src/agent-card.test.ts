import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AgentInterface, agentCard, MODES } from './agent-card.ts';
import { resumeExtension } from './resume-extension.ts';

const skill = { id: 'version', name: 'Version', description: 'Shows the version', tags: ['argocd'] };
const settings = { name: 'n', description: 'd', version: '1.2.3', url: 'http://h:1/', skills: [skill], capabilities: {} };

const grpc = (protocolVersion: '1.0' | '0.3'): AgentInterface => ({ url: 'h:2', protocolBinding: 'GRPC', protocolVersion });
const row = (one: AgentInterface) => [one.protocolBinding, one.protocolVersion, one.url, one.tenant];

test('one card serves 1.0 and 0.3 clients [S4-1 C-13]', () => {
  const card = agentCard(settings);
  assert.deepEqual(card.supportedInterfaces.map(row), [
    ['JSONRPC', '1.0', 'http://h:1/', undefined],
    ['HTTP+JSON', '1.0', 'http://h:1', undefined],
    ['JSONRPC', '0.3', 'http://h:1/', undefined],
    ['HTTP+JSON', '0.3', 'http://h:1', undefined],
  ]);
  assert.deepEqual([card.url, card.preferredTransport, card.protocolVersion], ['http://h:1/', 'JSONRPC', '0.3.0']);
  assert.deepEqual([card.skills, card.defaultInputModes, card.defaultOutputModes], [[skill], MODES, MODES]);
  assert.deepEqual(JSON.parse(JSON.stringify(card)), card);
});

test('the card has every configured field and no others [S4-1]', () => {
  const more = {
    provider: { organization: 'Acme', url: 'https://acme.example' },
    documentationUrl: 'https://acme.example/docs',
    iconUrl: 'https://acme.example/icon.png',
  };
  const card = agentCard({ ...settings, ...more, inputModes: ['text/plain'], outputModes: ['image/png'] });
  assert.deepEqual([card.provider, card.documentationUrl, card.iconUrl], Object.values(more));
  assert.deepEqual([card.defaultInputModes, card.defaultOutputModes], [['text/plain'], ['image/png']]);
  const plain = Object.keys(agentCard(settings));
  for (const name of [...Object.keys(more), 'security', 'securitySchemes', 'securityRequirements']) {
    assert.ok(!plain.includes(name), name);
  }
});

test('each binding and version has an interface, 1.0 first; every tenant also has the 1.0 interfaces [S4-1]', () => {
  const card = agentCard({ ...settings, moreInterfaces: [grpc('0.3'), grpc('1.0')], tenants: ['a', 'b'] });
  assert.deepEqual(
    card.supportedInterfaces.map(row).map(([binding, version, , tenant]) => `${binding} ${version} ${tenant ?? ''}`.trim()),
    [
      ...['', ' a', ' b', ''].flatMap(tenant => [`JSONRPC 1.0${tenant}`, `HTTP+JSON 1.0${tenant}`, `GRPC 1.0${tenant}`]),
      ...['JSONRPC 0.3', 'HTTP+JSON 0.3', 'GRPC 0.3'],
    ],
  );
  assert.deepEqual(card.additionalInterfaces, [
    { url: 'http://h:1/', transport: 'JSONRPC' },
    { url: 'http://h:1', transport: 'HTTP+JSON' },
    { url: 'h:2', transport: 'GRPC' },
  ]);
});

test('flags default to false; a card always has a skill [S4-2]', () => {
  const card = agentCard({ ...settings, skills: [] });
  assert.deepEqual(card.capabilities, {
    streaming: false,
    pushNotifications: false,
    stateTransitionHistory: false,
    extendedAgentCard: false,
  });
  assert.ok(!('supportsAuthenticatedExtendedCard' in card));
  assert.equal(card.skills.length, 1);
});

test('each flag equals its setting; 0.3 also has the extended card [S4-2]', () => {
  for (const flag of ['streaming', 'pushNotifications', 'stateTransitionHistory', 'extendedAgentCard'] as const) {
    const { capabilities, supportsAuthenticatedExtendedCard } = agentCard({ ...settings, capabilities: { [flag]: true } });
    const on = Object.entries(capabilities).filter(([, value]) => value === true);
    assert.deepEqual(on, [[flag, true]]);
    assert.equal(supportsAuthenticatedExtendedCard, flag === 'extendedAgentCard' ? true : undefined);
  }
  const { extensions } = agentCard({ ...settings, capabilities: { extensions: [resumeExtension] } }).capabilities;
  assert.deepEqual(
    extensions?.map(({ uri, required }) => [uri, required]),
    [['https://hopline.dev/extensions/resume/v1', false]],
  );
});

test('the card states security in the forms of 1.0 and 0.3 [S4-1]', () => {
  const scheme = { scheme: 'Bearer', bearerFormat: 'JWT' };
  const security = {
    securitySchemes: { bearer: { type: 'http', ...scheme, httpAuthSecurityScheme: scheme } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    security: [{ bearer: [] }],
  };
  const { securitySchemes, securityRequirements, security: legacy } = agentCard({ ...settings, security });
  assert.deepEqual({ securitySchemes, securityRequirements, security: legacy }, security);
});

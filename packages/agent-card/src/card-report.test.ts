import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { agentCard } from './agent-card.ts';
import { cardFindings, FINDINGS_MAX } from './card-findings.ts';
import { cardReport, decodeCardReport, noCardReport, REPORT_CHARS_MAX, REPORT_ITEMS_MAX } from './card-report.ts';
import { draftExtension } from './draft-extension.ts';

const skill = { id: 's', name: 'S', description: 'd', tags: ['t'] };
const texts = { name: 'A', description: 'd', version: '1' };
const modes = { defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'] };
const base = { ...texts, ...modes, capabilities: {}, skills: [skill] };
const jsonRpc = { url: 'https://a.example/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' };
const card10 = { ...base, supportedInterfaces: [jsonRpc] };
const card03 = { ...base, url: 'https://a.example/', protocolVersion: '0.3.0' };

test('cards that follow 1.0, 0.3, or both have no findings', () => {
  const own = agentCard({ ...texts, url: 'https://a.example/', skills: [], capabilities: { extensions: [draftExtension] } });
  for (const card of [card10, card03, own, { ...card10, provider: null }, { ...card03, skills: [{ ...skill, tags: [] }] }])
    assert.deepEqual(cardFindings(card), []);
});

test('each finding has the path of its member', () => {
  const findings = (card: object) => cardFindings(card);
  assert.deepEqual(findings({ ...card10, version: undefined, name: '', description: 7 }), [
    'name is empty.',
    'description must be a string.',
    'version is missing.',
  ]);
  assert.deepEqual(findings({ ...card10, skills: [skill, { ...skill, id: undefined, tags: 'x', examples: [1] }] }), [
    'skills[1].id is missing.',
    'skills[1].tags must be a list of strings.',
    'skills[1].examples must be a list of strings.',
  ]);
  assert.deepEqual(findings({ ...card10, skills: [], defaultInputModes: [] }), [
    'defaultInputModes is empty.',
    'skills is empty.',
  ]);
  assert.deepEqual(
    findings({ ...card10, capabilities: { streaming: 'yes', extensions: [{ uri: 1 }] }, provider: { url: 'u' } }),
    [
      'provider.organization is missing.',
      'capabilities.streaming must be true or false.',
      'capabilities.extensions[0].uri must be a string.',
    ],
  );
  assert.deepEqual(findings({ ...card03, protocolVersion: undefined }), ['protocolVersion is missing.']);
});

test('an unknown version, and a card without an interface that Hopline supports, are findings', () => {
  assert.deepEqual(cardFindings({ ...card10, supportedInterfaces: [jsonRpc, { ...jsonRpc, protocolVersion: '2.0' }] }), [
    'supportedInterfaces[1].protocolVersion is not a version of A2A that Hopline supports: 0.2, 0.3 or 1.0.',
  ]);
  const none = 'has no interface that Hopline supports: JSON-RPC of A2A 0.2, 0.3 or 1.0.';
  assert.deepEqual(cardFindings({ ...card10, supportedInterfaces: [{ ...jsonRpc, protocolBinding: 'GRPC' }] }), [
    `supportedInterfaces ${none}`,
  ]);
  assert.deepEqual(cardFindings({ ...card03, preferredTransport: 'HTTP+JSON' }), [`url ${none}`]);
  for (const card of [undefined, null, 'x', [card10]])
    assert.deepEqual(cardFindings(card), ['The agent card must be an object.']);
});

test('the report of a card has its texts and interfaces, but no address', () => {
  const card = {
    ...card10,
    provider: { organization: 'Example', url: 'https://example.com' },
    capabilities: { streaming: true, pushNotifications: false, extensions: [{ uri: 'https://x.example/e' }] },
    supportedInterfaces: [jsonRpc, { ...jsonRpc, tenant: 't' }, { ...jsonRpc, protocolBinding: 'GRPC' }],
  };
  assert.deepEqual(cardReport(card), {
    name: 'A',
    version: '1',
    provider: 'Example',
    interfaces: ['JSONRPC, A2A 1.0', 'GRPC, A2A 1.0'],
    capabilities: ['streaming'],
    extensions: ['https://x.example/e'],
    inputModes: ['text/plain'],
    outputModes: ['text/plain'],
    findings: [],
  });
  assert.deepEqual(cardReport(card03).interfaces, ['JSONRPC, A2A 0.3.0']);
  assert.deepEqual(cardReport('x').findings, ['The agent card must be an object.']);
});

test('a report of any card is bounded, has findings without text of the card, and survives the registry', () => {
  const PLANTED = 'planted-text-';
  const value = fc.anything({
    maxDepth: 3,
    withNullPrototype: false,
    key: fc.constantFrom(...Object.keys(card10), 'tags', 'uri', `${PLANTED}k`),
  });
  const members = Object.keys({ ...card10, ...card03 });
  const card = fc.dictionary(fc.constantFrom(...members, `${PLANTED}m`), fc.oneof(value, fc.constant(PLANTED.repeat(40))));
  fc.assert(
    fc.property(card, one => {
      const report = cardReport(one);
      for (const finding of report.findings) {
        assert.ok(!finding.includes(PLANTED), finding);
        assert.ok(finding.length <= REPORT_CHARS_MAX, finding);
      }
      assert.ok(report.findings.length <= FINDINGS_MAX);
      for (const list of [report.interfaces, report.extensions, report.inputModes, report.outputModes])
        assert.ok(list.length <= REPORT_ITEMS_MAX && list.every(text => text.length <= REPORT_CHARS_MAX));
      assert.ok([report.name, report.version, report.provider].every(text => text.length <= REPORT_CHARS_MAX));
      assert.deepEqual(decodeCardReport(JSON.parse(JSON.stringify(report))), report);
    }),
  );
  const many = { ...card10, skills: Array.from({ length: 100 }, () => ({})) };
  const { findings } = cardReport(many);
  assert.deepEqual([findings.length, findings.at(-1)], [FINDINGS_MAX, '385 more findings are not listed.']);
});

test('a report in the form of another version is not decoded, and one that another process wrote is bounded', () => {
  const report = noCardReport();
  assert.deepEqual(decodeCardReport({ ...report, more: 1 }), report);
  for (const other of [undefined, 'x', { ...report, findings: [{ path: 'x' }] }, { ...report, name: undefined }])
    assert.equal(decodeCardReport(other), undefined);
  const long = decodeCardReport({ ...report, name: 'x'.repeat(1_000), findings: Array.from({ length: 100 }, (_, n) => `f${n}`) });
  assert.deepEqual([long?.name.length, long?.findings.length], [REPORT_CHARS_MAX, 32]);
});

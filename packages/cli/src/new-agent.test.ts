import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseArguments } from './arguments.ts';
import { filesOf, NODE_TYPES_VERSION, newAgent, TYPESCRIPT_VERSION } from './new-agent.ts';
import { Output } from './output.ts';
import { ownCommand } from './own-command.ts';

test('the tools of a new agent have the versions of this repository', () => {
  const catalog = readFileSync(new URL('../../../pnpm-workspace.yaml', import.meta.url), 'utf8');
  assert.ok(catalog.includes(`\n  typescript: ${TYPESCRIPT_VERSION}\n`));
  assert.ok(catalog.includes(`\n  "@types/node": ${NODE_TYPES_VERSION}\n`));
});

test('the files name the agent, and the README has ten lines', () => {
  const files = filesOf('reviewer');
  assert.match(files['agent.ts'] ?? '', /name: 'reviewer'/);
  assert.equal(JSON.parse(files['package.json'] ?? '').name, 'reviewer');
  assert.ok((files['README.md'] ?? '').trimEnd().split('\n').length <= 10);
});

test('new takes two words, and the name is a name of an agent', () => {
  const parsed = parseArguments(['new', 'agent', 'x'], undefined);
  assert.ok('subject' in parsed && parsed.subject === 'agent x');
  for (const line of [['new'], ['new', 'agent'], ['new', 'agent', 'x', 'y']])
    assert.throws(() => parseArguments(line, undefined), { name: 'UsageError' });
});

test('in a checkout the next step packs what no registry has', t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-new-'));
  t.after(() => rmSync(folder, { recursive: true }));
  let out = '';
  const output = new Output({ write: text => (out += text) }, { write: () => {} }, {});
  const checkout = join(import.meta.dirname, '../../..');
  newAgent({ subject: 'agent reviewer', folder, output, own: ownCommand({}, checkout) });
  assert.equal(out, 'reviewer/ is ready: npm run pack && cd reviewer && npm install ../dist/hopline-*.tgz && npm test\n');
});

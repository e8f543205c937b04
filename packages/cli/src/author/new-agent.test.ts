import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { localCommand } from '@hopline/local-cluster';
import { Output } from '@hopline/terminal';
import { parseArguments } from '../command/parse-arguments.ts';
import { COMMANDS } from '../commands.ts';
import { VERSION } from '../version.ts';
import { filesOf, NODE_TYPES_VERSION, TYPESCRIPT_VERSION, writeAgent } from './new-agent.ts';

test('the tools of a new agent have the versions of this repository', () => {
  const catalog = readFileSync(new URL('../../../../pnpm-workspace.yaml', import.meta.url), 'utf8');
  assert.ok(catalog.includes(`\n  typescript: ${TYPESCRIPT_VERSION}\n`));
  assert.ok(catalog.includes(`\n  "@types/node": ${NODE_TYPES_VERSION}\n`));
});

test('the files contain the agent’s name, and the README has ten lines', () => {
  const files = filesOf('reviewer', '../dist');
  assert.match(files['agent.ts'] ?? '', /name: 'reviewer'/);
  const { name, dependencies, scripts } = JSON.parse(files['package.json'] ?? '');
  assert.equal(name, 'reviewer');
  assert.deepEqual(dependencies, { '@hopline/agent': `file:../dist/hopline-agent-${VERSION}.tgz` });
  assert.equal(scripts.test, 'node --test *.test.ts', 'a Node without TypeScript must fail, and not pass without a test');
  assert.ok((files['README.md'] ?? '').trimEnd().split('\n').length <= 10);
});

test('new takes two words, and the second must be a valid agent name', () => {
  const parsed = parseArguments(['new', 'agent', 'x'], COMMANDS, undefined);
  assert.deepEqual('given' in parsed && parsed.given.subject, ['agent', 'x']);
  for (const line of [['new'], ['new', 'agent'], ['new', 'agent', 'x', 'y']])
    assert.throws(() => parseArguments(line, COMMANDS, undefined), { name: 'UsageError' });
});

function inFolder(t: TestContext): { folder: string; printed: () => string; output: Output } {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-new-'));
  t.after(() => rmSync(folder, { recursive: true }));
  let out = '';
  return { folder, printed: () => out, output: new Output({ write: text => (out += text) }, { write: () => {} }, {}) };
}

const CHECKOUT = join(import.meta.dirname, '../../../..');

test('in a checkout the next step packs the packages that no registry has', t => {
  const { folder, printed, output } = inFolder(t);
  const own = { ...localCommand(CHECKOUT), tarballs: { folder: join(folder, 'dist'), pack: 'npm run pack' } };
  writeAgent('reviewer', undefined, { folder, output, own });
  assert.equal(
    printed(),
    'reviewer/ is ready, for Node 22.18 or newer: npm run pack && cd reviewer && npm install && npm test\n',
  );
  assert.equal(localCommand(CHECKOUT).tarballs?.pack, 'npm run pack');
  assert.equal(localCommand(folder).tarballs?.pack, `npm --prefix ${CHECKOUT} run pack -- --output ${join(CHECKOUT, 'dist')}`);
});

test('outside a checkout the user must name a folder that has the tarballs', t => {
  const { folder, printed, output } = inFolder(t);
  const own = { prefix: 'hopline', start: undefined, tarballs: undefined };
  const make = (packages: string | undefined) => writeAgent('reviewer', packages, { folder, output, own });
  assert.throws(() => make(undefined), /^UsageError: the packages of Hopline are not published yet: .* --packages DIR/);
  assert.throws(() => make('tarballs'), new RegExp(`^UsageError: there is no hopline-agent-${VERSION}.tgz in tarballs$`));
  mkdirSync(join(folder, 'tarballs'));
  for (const name of ['agent', 'cli']) writeFileSync(join(folder, 'tarballs', `hopline-${name}-${VERSION}.tgz`), '');
  make('tarballs');
  assert.equal(printed(), 'reviewer/ is ready, for Node 22.18 or newer: cd reviewer && npm install && npm test\n');
  const { devDependencies } = JSON.parse(readFileSync(join(folder, 'reviewer/package.json'), 'utf8'));
  assert.equal(devDependencies['@hopline/cli'], `file:../tarballs/hopline-cli-${VERSION}.tgz`);
});

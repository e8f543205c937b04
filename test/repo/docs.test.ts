import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { ADAPTERS, parseAgents } from '../../infra/local/launcher/agents-file.ts';
import { parseAgentEntry, SCHEMAS } from '../../services/sub-agent/src/agent-entry.ts';
import { REFERENCE } from './reference-documents.ts';
import { projectFiles, ROOT, read } from './source-files.ts';

const documents = projectFiles().filter(file => file.endsWith('.md'));

for (const [path, text] of Object.entries(REFERENCE)) {
  test(`${path} matches the sources`, async () => {
    assert.equal(read(path), await text(), 'run: node test/repo/write-reference.ts');
  });
}

test('the launcher names every adapter of a sub-agent', () => {
  assert.deepEqual(ADAPTERS, Object.keys(SCHEMAS));
});

test('every link between documents leads to a file', () => {
  for (const path of documents) {
    for (const [, target] of read(path).matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)) {
      assert.ok(existsSync(join(ROOT, dirname(path), target!)), `${path} links to ${target}`);
    }
  }
});

test('every link to a section leads to a heading', () => {
  for (const path of documents) {
    for (const [, target, anchor] of read(path).matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)) {
      const file = target === '' ? path : join(dirname(path), target!);
      if (file.endsWith('.md')) assert.ok(anchorsOf(read(file)).includes(anchor!), `${path} links to ${file}#${anchor}`);
    }
  }
});

test('a row of a table is one line, and an item of a list begins one', () => {
  for (const path of documents) {
    const text = read(path).replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '');
    for (const line of text.split('\n')) {
      if (/^ *\|/.test(line)) assert.match(line, /\|\s*$/, `${path}: ${line}`);
      assert.doesNotMatch(line, /^ {2,3}(?! *[-*|\d]).*[.:)] \d\. [A-Z]/, `${path}: an item in the middle of a line: ${line}`);
    }
  }
});

test('a decision record has the one header form, its file is named after its title, and the index lists it', () => {
  const index = read('docs/adr/README.md');
  const records = documents.filter(path => /^docs\/adr\/\d{4}-/.test(path));
  assert.ok(records.length > 80);
  for (const path of records) {
    const text = read(path);
    const [, number, title] =
      /^# (\d+)\. (.+)\n\nStatus: .+ · Date: \d{4}-\d\d-\d\d\n\n## Context\n/.exec(text) ?? assert.fail(`${path}: header`);
    const name = `${number!.padStart(4, '0')}-${title!
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replace(/-$/, '')}.md`;
    assert.equal(path, `docs/adr/${name}`);
    assert.ok(index.includes(`| ${number} | [${title}](${name}) |`), `docs/adr/README.md lacks ${name}`);
  }
});

test('each number of a decision record is used once', () => {
  const used = documents.flatMap(path => /^docs\/adr\/(\d{4})-/.exec(path)?.slice(1) ?? []);
  assert.deepEqual(used.toSorted(), [...new Set(used)].toSorted());
});

test('documents name only files that exist', () => {
  for (const path of documents) {
    for (const [, file] of read(path).matchAll(/`((?:test|packages|services|infra|docs)\/[\w./-]+\.[a-z]+)`/g)) {
      assert.ok(existsSync(join(ROOT, file!)), `${path} names ${file}`);
    }
  }
});

test('the file tables of a README name files and folders below it', () => {
  const files = projectFiles();
  let names = 0;
  for (const path of documents.filter(file => file.endsWith('/README.md'))) {
    const below = files.filter(file => file.startsWith(`${dirname(path)}/`)).map(file => `${file}/`);
    const tables = read(path).match(/^\| file.*\n(?:\|.*\n)+/gm) ?? [];
    const firstCells = tables.flatMap(table => table.split('\n').slice(2)).map(row => row.split('|')[1] ?? '');
    for (const [, name] of firstCells.join('\n').matchAll(/`([\w./-]+(?:\.ts|\/))`/g)) {
      const part = `/${name!.replace(/\/$/, '')}/`;
      assert.ok(
        below.some(file => file.includes(part)),
        `${path} names ${name}`,
      );
      names += 1;
    }
  }
  assert.ok(names > 50, `${names} names`);
});

const README_WORDS_MAX = 1_200;

test('README.md can be read in five minutes, and shows a killed relay, the console, a trace and a cluster at work', () => {
  const text = read('README.md');
  const words = text.split(/\s+/).filter(Boolean).length;
  assert.ok(words <= README_WORDS_MAX, `${words} words`);
  const pictures = [...text.matchAll(/!\[[^\]]+\]\((docs\/pictures\/[^)]+)\)/g)].map(([, picture]) => picture);
  assert.deepEqual(pictures, [
    'docs/pictures/kill-relay.svg',
    'docs/pictures/console/task-light.webp',
    'docs/pictures/trace-light.webp',
    'docs/pictures/top-light.webp',
  ]);
});

test('every claim about a peer has its source', () => {
  const text = read('docs/compared-with.md');
  const [claims, list] = text.split('## Sources\n');
  const sources = [...list!.matchAll(/^(\d+)\. .*(?:\n {3}.*)*/gm)];
  for (const [source, number] of sources) assert.match(source, /https:\/\//, `source ${number}`);
  const numbers = sources.map(([, number]) => Number(number));
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => index + 1),
  );
  const cited = [...claims!.matchAll(/\[(\d+(?:, \d+)*)\]/g)].flatMap(([, some]) => some!.split(', ').map(Number));
  assert.deepEqual(
    [...new Set(cited)].toSorted((a, b) => a - b),
    numbers,
  );
  const peers = [...claims!.matchAll(/^## (?!Choose)(.+)\n([\s\S]*?)(?=^## )/gm)];
  assert.equal(peers.length, 7);
  for (const [, name, section] of peers) assert.match(section!, /\[\d+/, name!);
});

test('the README and the comparison state only figures that the benchmarks list', () => {
  const text = read('docs/reference/benchmarks.md');
  const [table = ''] = /(?<=^## Figures that other pages quote\n[^|]*)(?:\|.*\n)+/m.exec(text) ?? [''];
  const rows = table.split('\n').slice(2, -1);
  const measured = new Map(rows.map(row => row.split(' | ')).map(([figure, value]) => [figure!.slice(2), value!]));
  for (const row of rows) assert.match(row, / \| \d{4}-\d\d-\d\d \| .+ \| (?:met|\*\*missed\*\*) \|$/);
  const elsewhere = text.replace(table, '');
  for (const [figure, value] of measured) assert.ok(elsewhere.includes(value.split(' ')[0]!), `${figure}: ${value}`);
  const [cost] = /(?<=^## What it costs\n)[\s\S]*?(?=^## )/m.exec(read('README.md')) ?? assert.fail('no costs');
  const quoted = [...cost.matchAll(/^\| (.+) \| (.+) \|$/gm)].slice(1);
  assert.ok(quoted.length > 2);
  for (const [, figure, value] of quoted) assert.equal(value, measured.get(figure!), figure!);
  // The dates of the runs, and the load that the goals name.
  const known = /\d{4}-\d\d-\d\d|streams of 20 tokens\/s/g;
  assert.doesNotMatch(cost.replaceAll(/^\|.*$/gm, '').replaceAll(known, ''), /\d/);
  const [, ...hopline] = /^\| Hopline \|(.+)$/m.exec(read('docs/compared-with.md'))![1]!.split('|');
  for (const [number] of hopline.join('').matchAll(/\d[\d.,]*/g)) assert.ok(table.includes(` ${number} `), number);
});

test('every guide is in the index', () => {
  const index = read('docs/README.md');
  const guides = documents.filter(path => path.startsWith('docs/guides/'));
  for (const path of guides) assert.ok(index.includes(`(${path.slice('docs/'.length)})`), path);
});

test('every guarantee and every failure names its test', () => {
  for (const path of ['README.md', 'docs/reference/failures.md']) {
    const rows = read(path)
      .split('\n')
      .filter(line => /^\|.*\.test\.ts/.test(line));
    assert.ok(rows.length > 5, `${path} has ${rows.length} rows with a test`);
  }
});

test('every attack in THREATS.md names what stops it and a test', () => {
  const rows = read('THREATS.md')
    .split('\n')
    .filter(line => line.startsWith('|') && !/^\|(?: attack |---)/.test(line));
  assert.ok(rows.length > 40);
  for (const row of rows) assert.match(row, /^\|[^|]+\|[^|]+\|(?: `[\w./-]+\.test\.(?:ts|mjs)`,?)+ \|$/, row);
});

/** Code blocks in JSON that are agents files. Leaves out wire.md, whose responses have a member of the same name. */
const agentsFiles = documents
  .filter(path => path !== 'docs/reference/wire.md')
  .flatMap(path =>
    [...read(path).matchAll(/^```json\n([\s\S]*?)^```/gm)]
      .filter(([, text]) => text!.includes('"agents"'))
      .map(([, text]) => ({ path, text: text! })),
  );

test('every agents file, in a document or an example, is accepted by the launcher, by the sub-agent and by the schema', () => {
  const examples = projectFiles().filter(file => /^infra\/(?:examples\/[^/]+|local\/demo)\/agents\.json$/.test(file));
  assert.ok(agentsFiles.length >= 3 && examples.length >= 6);
  const matches = new Ajv({ strict: false }).compile(JSON.parse(read('docs/reference/agents.schema.json')));
  for (const { path, text } of [...agentsFiles, ...examples.map(file => ({ path: file, text: read(file) }))]) {
    for (const entry of parseAgents(text)) assert.doesNotThrow(() => parseAgentEntry(JSON.stringify(entry)), path);
    assert.ok(matches(JSON.parse(text)), `${path}: ${JSON.stringify(matches.errors)}`);
  }
});

test('the schema refuses an unknown field and an unknown adapter', () => {
  const matches = new Ajv({ strict: false }).compile(JSON.parse(read('docs/reference/agents.schema.json')));
  const agent = { name: 'a', adapter: 'a2a', url: 'http://h/' };
  assert.ok(matches({ $schema: './agents.schema.json', agents: [agent] }));
  for (const wrong of [
    { ...agent, colour: 'red' },
    { ...agent, adapter: 'b2b' },
    { ...agent, name: 'A' },
    { adapter: 'module', path: 'x' },
  ])
    assert.equal(matches({ agents: [wrong] }), false, JSON.stringify(wrong));
  assert.equal(matches({ agent: [agent] }), false);
});

test('every command of the examples belongs to this repository, and Python has the name that machines use', () => {
  const lines = [...read('infra/examples/README.md').matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, text]) =>
    text!.trim().split('\n'),
  );
  assert.ok(lines.length > 12);
  for (const line of lines) {
    assert.match(line, /^(?:[A-Z_]+=\S+ )*(?:npm start|npm run -s hopline -- |node infra|python3 |\.venv\/bin\/python3 )/);
    for (const [path] of line.matchAll(/infra\/[\w./-]+/g)) assert.ok(existsSync(join(ROOT, path)), line);
  }
});

test('ARCHITECTURE.md has a line for every service', () => {
  const text = read('ARCHITECTURE.md');
  const names = projectFiles().flatMap(file => /^services\/([^/]+)\/package\.json$/.exec(file)?.[1] ?? []);
  assert.ok(names.length > 4);
  for (const name of names) assert.ok(text.includes(`| \`services/${name}\` |`), `ARCHITECTURE.md has no line for ${name}`);
});

test('documents name only settings, metrics and buckets that the sources have', () => {
  const names = /\b(?:HOPLINE|NATS|OPENAI)_[A-Z_]+[A-Z]\b|\bhopline_[a-z_]+[a-z]\b/g;
  const metrics = read('docs/reference/metrics.md');
  const sources = projectFiles()
    .filter(
      file => /^(packages|services|infra|test)\/.*\.(ts|mjs|txt|html|yaml)$/.test(file) && file !== 'test/repo/docs.test.ts',
    )
    .map(read);
  const known = new Set([metrics, ...sources].flatMap(text => text.match(names) ?? []));
  for (const path of documents) {
    for (const name of read(path).match(names) ?? []) assert.ok(known.has(name), `${path} names ${name}`);
  }
});

const UNITS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  day: 86_400_000,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
};

test('a number after the name of a setting in a document is the default of that setting', () => {
  const rows = read('docs/reference/settings.md').matchAll(/^\| `([A-Z_]+)` +\| `([\d.]+)` +\|/gm);
  const defaults = new Map([...rows].map(([, name, value]) => [name, Number(value)]));
  let checked = 0;
  for (const path of documents) {
    for (const [place, name, number, unit] of read(path).matchAll(
      /\b((?:HOPLINE|NATS)_[A-Z_]+)`?(?: \(|, )(\d[\d.,]*) ?(ms|s|min|h|day|KiB|MiB|GiB)?(?=[;,)]| \|)/g,
    )) {
      if (!defaults.has(name) || (place.includes(', ') && unit === undefined)) continue;
      assert.equal(Number(number!.replaceAll(',', '')) * (UNITS[unit!] ?? 1), defaults.get(name), `${path}: ${place}`);
      checked += 1;
    }
  }
  assert.ok(checked > 14, `${checked} numbers`);
});

/** Anchors as GitHub makes them from headings, and explicit ones. */
function anchorsOf(markdown: string): string[] {
  const headings = [...markdown.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return [...headings, ...[...markdown.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id!)];
}

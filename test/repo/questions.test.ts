import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { DASHBOARDS } from '../../infra/observe/dashboards/dashboards.ts';

const PAGE = new URL('../../docs/reference/questions.md', import.meta.url);
const STUMBLES = new URL('stumbles.md', PAGE);

/** The cells of the rows whose first cell is a letter, a number, or both. */
function rowsOf(page: URL): string[][] {
  return readFileSync(page, 'utf8')
    .split('\n')
    .filter(line => /^\| (?:[A-Z]?\d+|[A-Z]) \|/.test(line))
    .map(line => line.split(' | ').map(cell => cell.replace(/^\| | \|$/g, '')));
}

const rows = rowsOf(PAGE);
const stumbles = rowsOf(STUMBLES);

const panels = new Set(
  DASHBOARDS.flatMap(({ title, rows: own }) =>
    own.flatMap(row => row.panels.map(panel => `${title.replace('Hopline / ', '')}: ${panel.title}`)),
  ),
);

test('the page of questions has the 45 of the review, each with an answer and a test', () => {
  const numbers = [...Array.from({ length: 30 }, (_, n) => `${n + 1}`), ...Array.from({ length: 15 }, (_, n) => `N${n + 1}`)];
  assert.deepEqual(
    rows.map(([number]) => number),
    numbers,
  );
  for (const row of rows) assert.equal(row.length, 4, `question ${row[0]}`);
});

test('every panel, command and metric that answers a question exists', () => {
  const metrics = readFileSync(new URL('metrics.md', PAGE), 'utf8');
  const commands = readFileSync(new URL('cli.md', PAGE), 'utf8');
  for (const [number, , answer = ''] of rows) {
    for (const [, list] of answer.matchAll(/panels? ([^;]+)/g)) {
      // A title may have a comma, so the longest known title counts.
      let rest = list!.trim();
      while (rest !== '') {
        const found = [...panels].filter(name => rest.startsWith(name)).toSorted((a, b) => b.length - a.length)[0];
        assert.ok(found, `question ${number}: no panel "${rest}"`);
        rest = rest
          .slice(found.length)
          .replace(/^, `\w+`/, '')
          .replace(/^, /, '');
      }
    }
    for (const [, name] of answer.matchAll(/`hopline ([a-z-]+)/g))
      assert.match(commands, new RegExp(`^#+ .*\\b${name}\\b`, 'm'), `question ${number}: no command ${name}`);
    for (const [name] of answer.matchAll(/\bhopline_\w+/g))
      assert.ok(metrics.includes(`\`${name}\``), `question ${number}: ${name}`);
  }
});

const numbered = (letter: string, count: number) => Array.from({ length: count }, (_, n) => `${letter}${n + 1}`);

test('the page of stumbles has 17 from the review of observability and 32 from the review of Kubernetes, each with a proof', () => {
  assert.deepEqual(
    stumbles.map(([number]) => number),
    [...numbered('O', 17), ...'ABCDEFGHIJ', ...numbered('K', 22)],
  );
  for (const row of stumbles) assert.equal(row.length, 4, `stumble ${row[0]}`);
});

test('every test that proves an answer exists, and every sentence of a page', () => {
  for (const [number, , , proofs = ''] of [...rows, ...stumbles]) {
    const links = proofs.split(/(?<=\)), (?=\[)/);
    for (const proof of links) {
      const [, title, path] = /^\[(.+)\]\((.+)\)$/.exec(proof) ?? [];
      assert.ok(title !== undefined && path !== undefined, `${number}: ${proof}`);
      const file = new URL(path, PAGE);
      assert.ok(existsSync(file), `${number}: ${path}`);
      assert.ok(readFileSync(file, 'utf8').includes(title), `${number}: no test or sentence "${title}" in ${path}`);
    }
  }
});

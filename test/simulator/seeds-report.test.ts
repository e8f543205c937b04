import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { addRun, emptyReport, merge, missingOf, type SeedsReport } from './seeds-report.ts';
import { SITUATIONS, type Situation } from './situations.ts';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));
const ALL = Object.keys(SITUATIONS) as Situation[];
const [RARE, ...COMMON] = ALL as [Situation, ...Situation[]];

function reportOf(from: number, met: readonly (readonly Situation[])[], theme?: string): SeedsReport {
  const report = emptyReport({ log: 'nats', theme, from, commit: 'abc' });
  for (const situations of met)
    addRun(report, { violations: [], endedAt: 36_000, situations: new Set(situations), coverage: new Set(['task: new']) });
  return report;
}

test('a report has the number of seeds that met each situation and transition, the first of them, and the seeds that failed', () => {
  const report = reportOf(5, [[], [RARE], [RARE]]);
  const rule = 'everything ends';
  const violations = [1, 2].map(task => ({ rule, detail: `task ${task}` }));
  addRun(report, { violations, endedAt: 0, situations: new Set(), coverage: new Set() });
  assert.deepEqual(report.ranges, [{ from: 5, seeds: 4 }]);
  assert.deepEqual(report.situations, { [RARE]: { seeds: 2, first: 6 } });
  assert.deepEqual(report.transitions, { 'task: new': { seeds: 3, first: 5 } });
  assert.deepEqual(report.failed, [{ seed: 8, rules: [rule] }]);
  assert.equal(report.virtualHours.toFixed(2), '0.03');
});

test('two halves of 1,000 seeds are judged as one run, in any order', () => {
  const half = (from: number, first: readonly Situation[]) =>
    reportOf(
      from,
      Array.from({ length: 500 }, (_, index) => (index === 0 ? first : [])),
    );
  const [early, late, poor] = [half(1, COMMON), half(501, ALL), half(501, COMMON)];
  assert.deepEqual([early, late].map(missingOf), [[], []]);
  assert.deepEqual(missingOf(merge([early, poor])), [RARE]);
  const merged = merge([late, early]);
  assert.deepEqual(missingOf(merged), []);
  assert.deepEqual(
    [merged.situations[RARE], merged.situations[COMMON[0]!]],
    [
      { seeds: 1, first: 501 },
      { seeds: 2, first: 1 },
    ],
  );
  assert.deepEqual([merged.ranges.map(({ from }) => from), merged.commits], [[1, 501], ['abc']]);
});

test('seeds that count twice, and runs of different kinds, are not merged', () => {
  const one = reportOf(1, [[], []]);
  assert.throws(() => merge([one, reportOf(2, [[]])]), /^Error: two reports have seed 2$/);
  assert.throws(() => merge([one, reportOf(3, [[]], 'none')]), /^Error: the reports differ in their log or their theme$/);
  assert.throws(() => merge([one, { ...reportOf(3, [[]]), log: 'memory' }]), /differ in their log/);
});

test('the command writes the report of its seeds, and merges the files', t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-seeds-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const at = (file: string) => join(folder, file);
  const simulate = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' });
    assert.equal(stderr, '');
    return { status, stdout };
  };
  for (const seed of ['1', '2'])
    assert.equal(simulate('--theme', 'none', '--seeds', '1', '--from', seed, '--report', at(`${seed}.json`)).status, 0);
  const { status, stdout } = simulate('--merge', at('1.json'), at('2.json'), '--report', at('merged.json'));
  assert.equal(status, 0);
  assert.match(stdout, /^2 seeds, 0 failed, /m);
  const reportIn = (file: string) => JSON.parse(readFileSync(at(file), 'utf8')) as SeedsReport;
  const { transitions, ranges, theme } = reportIn('merged.json');
  assert.deepEqual([ranges.length, theme], [2, 'none']);
  assert.deepEqual(transitions['writer: facts stored'], { seeds: 2, first: 1 });
  writeFileSync(at('2.json'), JSON.stringify({ ...reportIn('2.json'), failed: [{ seed: 2, rules: ['a rule'] }] }));
  const failed = simulate('--merge', at('1.json'), at('2.json'));
  assert.equal(failed.status, 1);
  assert.match(failed.stdout, /^seed 2: a rule$/m);
});

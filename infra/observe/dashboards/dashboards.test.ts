import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { DASHBOARDS } from './dashboards.ts';
import { grafanaJson } from './grafana-json.ts';

const PROMTOOL = process.env.PROMTOOL ?? 'promtool';
const isMissing = spawnSync(PROMTOOL, ['--version']).error !== undefined;

/** Labels by metric, from the generated table. */
const KNOWN = new Map(
  [
    ...readFileSync(new URL('../../../docs/reference/metrics.md', import.meta.url), 'utf8').matchAll(
      /^\| `((?:hopline|gen_ai|process|nodejs|v8js)_\w+)`\s.*$/gm,
    ),
  ].map(line => {
    const cells = line[0].split('|').map(cell => cell.trim());
    return [line[1]!, [...(cells[6] ?? '').matchAll(/`(\w+)`/g)].map(([, label]) => label!)] as const;
  }),
);
/** Metrics of NATS, as `nats-metrics.ts` and prometheus-nats-exporter name them; `up` comes from Prometheus. */
const OTHERS = /^(up|gnatsd_varz_(connections|slow_consumers|cpu|mem)|jetstream_(stream|consumer)_\w+)$/;
const OF_SCRAPE = ['job', 'instance', 'service', 'le'];

const panels = DASHBOARDS.flatMap(dashboard => dashboard.rows.flatMap(row => row.panels.map(panel => ({ dashboard, panel }))));
const queries = panels.flatMap(({ dashboard, panel }) =>
  panel.queries.map(({ expr, legend }) => ({ name: `${dashboard.title}, ${panel.title}`, expr, legend })),
);

/** A query that Prometheus accepts: Grafana's variables are replaced. */
const plain = (expr: string) =>
  expr
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$__range', '5m')
    .replaceAll('"$job"', '".*"')
    .replaceAll('"$agent"', '".*"');

test('every panel has a description, a unit and a title of its own', () => {
  for (const { dashboard, panel } of panels) {
    assert.match(panel.description, /\.$/, `${dashboard.title}, ${panel.title}`);
    assert.ok(panel.queries.length > 0 || panel.content !== undefined);
  }
  const names = panels.map(({ dashboard, panel }) => `${dashboard.uid} ${panel.title}`);
  assert.deepEqual(names, [...new Set(names)]);
});

test('queries name only metrics and labels that the services export', () => {
  for (const { name, expr, legend } of queries) {
    const words = expr.replaceAll(/"[^"]*"/g, '""').matchAll(/\b([a-z]\w*)(?=\{| *\[| >|\))/g);
    for (const [, word] of words) {
      if (word === undefined || OTHERS.test(word) || OF_SCRAPE.includes(word)) continue;
      const metric = word.replace(/_(bucket|sum|count)$/, '');
      const labels = KNOWN.get(metric);
      if (labels === undefined)
        assert.ok(!/^(hopline|gen_ai|process|nodejs|v8js)_/.test(word), `${name}: ${word} is not exported`);
      const shown = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
      for (const label of labels === undefined ? [] : shown)
        assert.ok([...labels!, ...OF_SCRAPE].includes(label), `${name}: ${metric} has no label ${label}`);
    }
  }
});

test('Prometheus parses every query', { skip: isMissing && 'no promtool on PATH (Debian: apt install prometheus)' }, t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-queries-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const rules = queries.map(({ expr }, index) => ({ record: `panel:${index}`, expr: plain(expr) }));
  const file = join(folder, 'queries.json');
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }));
  const { status, stderr } = spawnSync(PROMTOOL, ['check', 'rules', file], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});

test('panels fill rows of 24 columns without overlap', () => {
  for (const dashboard of DASHBOARDS) {
    const { panels: placed } = grafanaJson(dashboard) as { panels: { gridPos: Record<'x' | 'y' | 'w' | 'h', number> }[] };
    for (const [index, { gridPos: a }] of placed.entries()) {
      assert.ok(a.x + a.w <= 24);
      for (const { gridPos: b } of placed.slice(index + 1)) {
        const overlaps = a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
        assert.ok(!overlaps, `${dashboard.title}: ${JSON.stringify([a, b])}`);
      }
    }
  }
});

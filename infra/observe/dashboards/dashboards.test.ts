import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { DASHBOARDS } from './dashboards.ts';
import { grafanaJson } from './grafana-json.ts';

const PROMTOOL = process.env.PROMTOOL ?? 'promtool';
const isMissing = spawnSync(PROMTOOL, ['--version']).error !== undefined;
const skip = isMissing && 'no promtool on PATH (Debian: apt install prometheus)';

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
const OTHERS = /^(up|gnatsd_varz_(connections|slow_consumers|cpu|mem)|gnatsd_healthz_status|jetstream_(stream|consumer)_\w+)$/;
const OF_SCRAPE = ['job', 'instance', 'service', 'le'];
const LABELS = new Set([...KNOWN.values()].flat());

const panels = DASHBOARDS.flatMap(dashboard => dashboard.rows.flatMap(row => row.panels.map(panel => ({ dashboard, panel }))));
const queries = panels.flatMap(({ dashboard, panel }) =>
  panel.queries.map(({ expr, legend }) => ({ name: `${dashboard.title}, ${panel.title}`, expr, legend })),
);

/** A query that Prometheus accepts: Grafana's variables are replaced. */
const plain = (expr: string) =>
  expr
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$__range', '5m')
    .replaceAll('$__interval_ms', '60000')
    .replaceAll('$__interval', '1m')
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
      if (word === undefined || OTHERS.test(word) || OF_SCRAPE.includes(word) || LABELS.has(word)) continue;
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

test('no panel adds up the durations of hops, which overlap: shares come from critical paths', () => {
  const shares = queries.filter(({ expr }) => expr.includes('scalar(') && /hop/.test(expr));
  assert.ok(shares.length > 0);
  for (const { name, expr } of shares) assert.match(expr, /hopline_path_time_seconds_total/, name);
  for (const { name, expr } of queries) assert.doesNotMatch(expr, /hop_duration_seconds_sum/, name);
});

/** Fails if Prometheus cannot parse one of the queries. */
function assertParsed(t: TestContext, exprs: readonly string[]): void {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-queries-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const rules = exprs.map((expr, index) => ({ record: `panel:${index}`, expr: plain(expr) }));
  const file = join(folder, 'queries.json');
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }));
  const { status, stderr } = spawnSync(PROMTOOL, ['check', 'rules', file], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
}

test('Prometheus parses every query', { skip }, t => {
  assertParsed(
    t,
    queries.map(({ expr }) => expr),
  );
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

type Model = {
  uid: string;
  templating: { list: { name: string; type: string; query: string }[] };
  annotations: { list: { name: string; expr: string }[] };
  panels: { title: string; datasource?: { uid: string }; links?: { title: string; url: string }[] }[];
};
const models = DASHBOARDS.map(dashboard => grafanaJson(dashboard) as Model);

test('every dashboard marks takeovers, versions and starts', { skip }, t => {
  for (const { uid, annotations } of models) {
    const names = annotations.list.map(({ name }) => name);
    assert.deepEqual(names, ['Takeovers', 'Versions', 'Starts'], uid);
  }
  assertParsed(
    t,
    models[0]!.annotations.list.map(({ expr }) => expr),
  );
});

test('data sources are variables, and panels of histograms lead to the traces of the shown time', () => {
  for (const { uid, templating, panels: placed } of models) {
    const variables = templating.list.map(({ name }) => name);
    for (const name of ['datasource', 'jaeger', 'tempo', 'runbook']) assert.ok(variables.includes(name), uid);
    for (const { title, datasource } of placed)
      assert.ok(datasource === undefined || datasource.uid.startsWith('$'), `${uid}, ${title}: ${datasource?.uid}`);
  }
  const firstToken = models[0]!.panels.find(({ title }) => title === 'Time to first token')!;
  const [jaeger, tempo] = firstToken.links!.map(({ url }) => decodeURIComponent(url));
  const left = JSON.parse(jaeger!.replace('/explore?left=', '')) as Record<string, unknown>;
  const [range, query] = [
    { from: '$__from', to: '$__to' },
    { refId: 'A', queryType: 'search', service: 'hopline-ingress' },
  ];
  assert.deepEqual(JSON.parse(JSON.stringify(left).replaceAll(/\$\{(\w+)\}/g, '$$$1')), {
    datasource: '$jaeger',
    queries: [query],
    range,
  });
  assert.match(tempo!, /"datasource":"\$\{tempo\}"/);
});

test('a description that names an alert links to its section in the runbook', () => {
  const runbook = readFileSync(new URL('../../RUNBOOK.md', import.meta.url), 'utf8');
  const sections = new Set([...runbook.matchAll(/^### (Hopline\w+)$/gm)].map(([, name]) => name!.toLowerCase()));
  const links = models.flatMap(({ panels: placed }) => placed.flatMap(({ links: own = [] }) => own));
  const linked = links.filter(({ title }) => title.startsWith('Runbook: '));
  assert.ok(linked.length >= 5, `${linked.length}`);
  for (const { url } of linked) {
    const [address, section] = url.split('#');
    assert.deepEqual([address, sections.has(section!)], [`\${runbook}`, true], url);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LINE } from '../../packages/telemetry/src/lines.ts';
import { METRICS } from '../../packages/telemetry/src/metric-registry.ts';
import { isTest, projectFiles, read } from './source-files.ts';

/**
 * An operator copies a word from the alert or the runbook into a search of logs and metrics, so the words must be the same everywhere. A log
 * line and its metric share their reason (`snakeWord`), so the values of labels cover both.
 */
const RUNBOOK = 'infra/RUNBOOK.md';
const GUIDES = ['operating', 'observing', 'upgrading', 'kubernetes'].map(name => `docs/guides/${name}.md`);
const OPERATORS_READ = [RUNBOOK, ...GUIDES, 'docs/reference/failures.md'];
const RULES = ['infra/helm/hopline/rules/alerts.yaml', 'infra/helm/hopline/rules/recording.yaml'];
/** Buckets of NATS, and the metrics that the collector derives from spans. */
const BUCKETS = /^hopline_(leases|presence|agents|push_|tasks$|contexts|messages|message_ids|spans)/;

const definitions = Object.values(METRICS);
const labelsOf = (definition: (typeof definitions)[number] | undefined): Record<string, readonly string[] | string> =>
  definition !== undefined && 'labels' in definition ? definition.labels : {};
const valuesOf = (values: readonly string[] | string | undefined): readonly string[] =>
  Array.isArray(values) ? (values as readonly string[]) : [];

test('every log line that a document names is written by a service', () => {
  const lines: string[] = Object.values(LINE);
  const { logEvents, logShortages, unknownRemoved } = METRICS;
  const events: string[] = [...logEvents.labels.kind, ...logShortages.labels.reason, ...unknownRemoved.labels.kind];
  let found = 0;
  for (const path of OPERATORS_READ) {
    const text = read(path);
    // One or several code spans follow "log line" or "log of the sub-agent:".
    for (const [, list] of text.matchAll(/\b[Ll]og(?: lines?| of [^|`:]*:) ((?:`[^`]+`(?:, then | or | and |, )?)+)/g))
      for (const [, line] of list!.matchAll(/`([^`]+)`/g)) {
        if (line!.startsWith('log: ')) continue;
        assert.ok(lines.includes(line!), `${path}: no service writes the line "${line}"`);
        found += 1;
      }
    for (const [, event] of text.matchAll(/`log: ([^`]+)`/g)) {
      if (event!.startsWith('NATS does not permit')) continue;
      assert.ok(events.includes(event!), `${path}: no service writes the line "log: ${event}"`);
      found += 1;
    }
  }
  assert.ok(found >= 25, `${found} lines`);
});

test('every line of LINE is in the runbook, and is written by a service', () => {
  const code = projectFiles().filter(path => /^(packages|services)\/.*\.ts$/.test(path) && !isTest(path));
  const used = new Set(code.flatMap(path => [...read(path).matchAll(/\bLINE\.(\w+)/g)].map(([, key]) => key!)));
  for (const [key, line] of Object.entries(LINE)) {
    assert.ok(read(RUNBOOK).includes(`\`${line}\``), `the runbook does not explain "${line}"`);
    assert.ok(used.has(key), `LINE.${key} is not used`);
  }
});

test('the runbook names only metrics and label values that the services export', () => {
  // The generated reference has the names of Prometheus: `hopline_gaps_total` for `hopline.gaps`.
  const rows = [...read('docs/reference/metrics.md').matchAll(/^\| `([a-z0-9_]+)`\s+\| `([a-z0-9_.]+)`/gm)];
  const labels = new Map(rows.map(([, exported, own]) => [exported!, labelsOf(definitions.find(({ name }) => name === own))]));
  assert.ok(labels.size > 40);
  let found = 0;
  for (const path of [...OPERATORS_READ, ...RULES]) {
    for (const [, word, selector = ''] of read(path).matchAll(/(?<![:\w])(hopline_[a-z0-9_]+)(?:\{([^}]*)\})?/g)) {
      const metric = word!.replace(/_(bucket|count|sum)$/, '');
      if (BUCKETS.test(metric)) continue;
      assert.ok(labels.has(metric), `${path} names ${word}, which is not exported`);
      found += 1;
      for (const [, label, value] of selector.matchAll(/(\w+)="([\w-]+)"/g)) {
        const values = valuesOf(labels.get(metric)![label!]);
        assert.ok(values.length === 0 || values.includes(value!), `${path}: ${metric} has no ${label}="${value}"`);
      }
    }
  }
  assert.ok(found > 60, `${found} metrics`);
});

test('the reasons of rejected records in the runbook match the log line and the metric', () => {
  const [section = ''] = /(?<=^### HoplineRecordsRejected\n)[^#]*/m.exec(read(RUNBOOK)) ?? [];
  const [row = ''] = /^\| `hopline_records_rejected_total` grows.*/m.exec(read(RUNBOOK)) ?? [];
  const named = [...`${section}${row}`.matchAll(/`([a-z]+(?:_[a-z]+)+)`(?=[,:]| is a defect)/g)].map(([, word]) => word!);
  const fields = ['raw_seq', 'task_id', 'trace_id'];
  const reasons: readonly string[] = METRICS.recordsRejected.labels.reason;
  for (const word of named) assert.ok([...reasons, ...fields].includes(word), word);
  assert.ok(named.length >= 6, `${named}`);
});

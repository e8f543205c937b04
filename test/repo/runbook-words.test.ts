import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LINE } from '../../packages/telemetry/src/lines.ts';
import { METRICS, PROCESS_METRICS } from '../../packages/telemetry/src/metric-registry.ts';
import { isTest, projectFiles, read } from './source-files.ts';

/**
 * An operator copies a word from the alert or the runbook into a search of logs and metrics: the words are the same everywhere. A log
 * line and its metric share their reason (`snakeWord`), so the values of labels stand for both.
 */
const RUNBOOK = 'infra/RUNBOOK.md';
const OPERATORS_READ = [RUNBOOK, 'docs/guides/operating.md', 'docs/guides/observing.md', 'docs/reference/failures.md'];

const definitions = Object.values(METRICS);
const labelsOf = (definition: (typeof definitions)[number]): Record<string, readonly string[] | string> =>
  'labels' in definition ? definition.labels : {};
const valuesOf = (values: readonly string[] | string | undefined): readonly string[] =>
  Array.isArray(values) ? (values as readonly string[]) : [];

test('every log line that a document names is written by a service', () => {
  const lines: string[] = Object.values(LINE);
  const events = [...valuesOf(METRICS.logEvents.labels.kind), ...valuesOf(METRICS.logShortages.labels.reason)];
  let found = 0;
  for (const path of OPERATORS_READ) {
    const text = read(path);
    // After "log line" or "log of the sub-agent:" stand one or several lines in code.
    for (const [, list] of text.matchAll(/\b[Ll]og(?: lines?| of [^|`:]*:) ((?:`[^`]+`(?:, then | or | and |, )?)+)/g))
      for (const [, line] of list!.matchAll(/`([^`]+)`/g)) {
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

test('every line of LINE is in the runbook, and a service writes it', () => {
  const code = projectFiles().filter(path => /^(packages|services)\/.*\.ts$/.test(path) && !isTest(path));
  const used = new Set(code.flatMap(path => [...read(path).matchAll(/\bLINE\.(\w+)/g)].map(([, key]) => key!)));
  for (const [key, line] of Object.entries(LINE)) {
    assert.ok(read(RUNBOOK).includes(`\`${line}\``), `the runbook does not explain "${line}"`);
    assert.ok(used.has(key), `LINE.${key} is not used`);
  }
});

test('metrics and the words of their labels are those that the services export', () => {
  const byName = new Map(definitions.map(one => [one.name.replaceAll('.', '_'), labelsOf(one)]));
  const words = new Set(definitions.flatMap(one => Object.values(labelsOf(one)).flatMap(values => [...valuesOf(values)])));
  const process = Object.values(PROCESS_METRICS).map(({ name }) => name.replaceAll('.', '_'));
  for (const path of [...OPERATORS_READ, 'infra/helm/hopline/rules/alerts.yaml', 'infra/helm/hopline/rules/recording.yaml']) {
    const text = read(path);
    for (const [, metric, selector = ''] of text.matchAll(/(?<![:\w])((?:hopline|gen_ai|nodejs|process)_[a-z0-9_]+)(?:\{([^}]*)\})?/g)) {
      const name = [...byName.keys(), ...process].find(
        one => metric === one || (metric!.startsWith(`${one}_`) && /_(total|seconds|bytes|bucket|count|sum|_)+$/.test(metric!)),
      );
      if (name === undefined) assert.ok(!/_(total|seconds|bucket|count)$/.test(metric!), `${path} names the metric ${metric}`);
      for (const [, label, value] of selector.matchAll(/(\w+)="([\w-]+)"/g)) {
        const values = valuesOf(byName.get(name ?? '')?.[label!]);
        assert.ok(values.length === 0 || values.includes(value!), `${path}: ${metric} has no ${label}="${value}"`);
      }
    }
  }
  // Rows of the runbook list reasons: `unknown_version`: …
  const known = new Set([...words, ...Object.keys(METRICS)]);
  const lists = [...read(RUNBOOK).matchAll(/hopline_(?:inputs|records)_rejected_total.*|(?<=### HoplineRecordsRejected\n)[^#]*/g)];
  for (const [row] of lists)
    for (const [, word] of row.matchAll(/`([a-z]+(?:_[a-z]+)+)`(?=[,:])/g))
      assert.ok(known.has(word!) || ['raw_seq', 'task_id', 'trace_id'].includes(word!), `the runbook names the reason ${word}`);
  assert.ok(lists.length >= 3);
});

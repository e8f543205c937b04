import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { TaskReport } from '@hopline/task-audit';
import { endOf, waterfallOf } from '@hopline/task-audit/waterfall';
import { CHART_COLUMNS, chartColumns, EVENT_ROWS_MAX, tracePage } from './trace-page.ts';
import { taskReport } from './trace-report.test-kit.ts';

const count = (text: string, part: string | RegExp) => text.split(part).length - 1;

test('a page has the waterfall, chunks over time, hold and gaps, and needs no other file', () => {
  const report = taskReport(6);
  const page = tracePage(report);
  assert.equal(count(page, '<tr class="'), waterfallOf(report).length);
  for (const part of [
    'agent argocd',
    'Chunks over time',
    'class="hold"',
    'class="gap"',
    'class="takeover"',
    'a relay took over',
    'relay-2-bbbbbbbb',
  ])
    assert.ok(page.includes(part), part);
  // No reference that a browser would fetch, no script, and no style outside the single sheet.
  assert.doesNotMatch(page, /https?:|<script|<link|<img|<iframe|\bstyle=|\son\w+=|@import|url\((?!#)/i);
  const [, policy = ''] = /Content-Security-Policy" content="([^"]+)"/.exec(page) ?? [];
  const [, style = ''] = /<style>([\s\S]*)<\/style>/.exec(page) ?? [];
  const hash = createHash('sha256').update(style).digest('base64');
  assert.equal(policy, `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`);
  assert.match(style, /prefers-color-scheme: dark/);
});

test('names and numbers from a server are shown as text, never as markup', () => {
  const evil = `</td><script>alert(1)</script>"'&<img src=x onerror=alert(1)>\u202e`;
  const replaced = (value: unknown): unknown => {
    if (typeof value === 'string') return value === 'takeover' || value === 'lost' ? value : evil;
    if (Array.isArray(value)) return value.map(replaced);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, replaced(one)]));
  };
  const page = tracePage(replaced(taskReport(3)) as TaskReport);
  assert.ok(page.includes('&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;&lt;img'));
  assert.doesNotMatch(page, /<script|<img|\u202e/);
  const numbers = taskReport(3);
  (numbers.producers[0] as { tokens: unknown }).tokens = evil;
  assert.doesNotMatch(tracePage(numbers), /<script|<img/);
});

test('the chart and the table of a long task are bounded', () => {
  const report = taskReport(20_000);
  const columns = chartColumns(report.events, endOf(report));
  assert.ok(columns.length <= CHART_COLUMNS);
  assert.equal(
    columns.reduce((sum, { chunks }) => sum + chunks, 0),
    20_000,
  );
  const page = tracePage(report);
  assert.ok(page.length < 2 * 1024 * 1024, `${page.length}`);
  assert.ok(page.includes(`and ${20_002 - EVENT_ROWS_MAX} more events`));
});

test('a column shows the chunk whose oldest token had waited longest when it was stored', () => {
  const report = taskReport(2);
  const [first] = report.events.filter(({ chunk }) => chunk !== undefined);
  const slow = { ...first!, chunk: { ...first!.chunk!, heldMs: 80, ageMs: 85 } };
  const [column] = chartColumns([first!, slow, first!], endOf(report));
  assert.deepEqual([column?.chunks, column?.tokens, column?.slowest.heldMs], [3, 6, 80]);
});

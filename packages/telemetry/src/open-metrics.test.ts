import assert from 'node:assert/strict';
import test from 'node:test';
import { createHopMetrics } from './metrics.ts';
import { metricsFormatFor } from './open-metrics.ts';
import { observeProcess } from './process-metrics.ts';
import { startMetrics } from './start-metrics.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const traced = (flags: string, trace = TRACE) => ({ traceparent: `00-${trace}-${SPAN}-${flags}` });

async function start(t: test.TestContext) {
  const reader = await startMetrics({ 'service.name': 'relay', 'service.version': '1.2.3' });
  t.after(() => reader.provider.shutdown());
  return { reader, metrics: createHopMetrics('relay', reader) };
}

const bucketsOf = (text: string, name: string) => text.split('\n').filter(line => line.startsWith(`${name}_bucket{`));

test('a bucket has the trace and the value that were recorded last, and no other bucket has that trace', async t => {
  const { reader, metrics } = await start(t);
  metrics.hopDuration.recordMs(1, { hop: 'hold', agent: 'files' });
  metrics.hopDuration.recordMs(40, { hop: 'hold', agent: 'files' }, traced('01', 'a'.repeat(32)));
  metrics.hopDuration.recordMs(50, { hop: 'hold', agent: 'files' }, traced('01'));
  metrics.hopDuration.recordMs(50, { hop: 'hold', agent: 'guide' });
  metrics.appendDuration.recordMs(1);
  const before = Date.now() / 1_000;
  const text = await reader.text('openmetrics');
  const shown = bucketsOf(text, 'hopline_hop_duration_seconds').filter(line => line.includes('#'));
  assert.equal(shown.length, 1, text);
  const found = /^hopline_hop_duration_seconds_bucket\{service="relay",hop="hold",agent="files",le="(.*)"\} 3 # (.*) (\S+)$/.exec(
    shown[0]!,
  );
  assert.deepEqual(found?.slice(1, 3), ['0.064', `{trace_id="${TRACE}",span_id="${SPAN}"} 0.05`]);
  assert.ok(Math.abs(Number(found![3]) - before) < 60);
});

test('a trace that is not sampled, or a carrier without one, makes no exemplar', async t => {
  const { reader, metrics } = await start(t);
  metrics.appendDuration.recordMs(1, {}, traced('00'));
  metrics.appendDuration.recordMs(2, {}, {});
  metrics.appendDuration.recordMs(4, {}, { traceparent: 'nonsense' });
  assert.doesNotMatch(bucketsOf(await reader.text('openmetrics'), 'hopline_append_duration_seconds').join(), /#/);
});

test('a trace that is not sampled replaces no exemplar, as in a process that samples few of its traces', async t => {
  const { reader, metrics } = await start(t);
  metrics.appendDuration.recordMs(40, {}, traced('01'));
  for (const flags of ['00', '02']) metrics.appendDuration.recordMs(50, {}, traced(flags, 'a'.repeat(32)));
  const shown = bucketsOf(await reader.text('openmetrics'), 'hopline_append_duration_seconds').filter(one => one.includes('#'));
  assert.equal(shown.length, 1);
  assert.match(shown[0]!, new RegExp(`trace_id="${TRACE}"`));
});

test('both forms have the same samples, and OpenMetrics names families without their type', async t => {
  const { reader, metrics } = await start(t);
  const stop = observeProcess(reader.meter, 'relay', '0.1.0');
  t.after(stop);
  metrics.tokens.add(3, { agent: 'files' });
  metrics.openTasks.observe(() => [[2, { state: 'working' }]]);
  metrics.hopDuration.recordMs(1, { hop: 'hold', agent: 'files' });
  const steady = (text: string) =>
    text.split('\n').filter(line => line !== '' && !line.startsWith('#') && !/^(process|nodejs|v8js)_/.test(line));
  const text = await reader.text();
  const open = await reader.text('openmetrics');
  assert.deepEqual(steady(open), steady(text));
  assert.ok(open.endsWith('\n# EOF\n'));
  assert.match(open, /^# TYPE hopline_tokens counter$/m);
  assert.match(open, /^# TYPE target info$/m);
  assert.doesNotMatch(open, /^# (TYPE|HELP|UNIT) \w+_total /m);
  assert.doesNotMatch(open, /\n\n/);
});

test('a scraper gets OpenMetrics only if it asks for it', () => {
  assert.equal(metricsFormatFor(undefined), 'text');
  assert.equal(metricsFormatFor('text/plain;version=0.0.4;q=0.5,*/*;q=0.1'), 'text');
  assert.equal(metricsFormatFor('application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1'), 'openmetrics');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTelemetry } from '@hopline/telemetry';
import { LogMetrics } from './log-metrics.ts';
import { LogNames } from './names.ts';

test('events of the log are counted by kind, and events of a full stream as its shortages', async t => {
  const telemetry = await startTelemetry({ service: 'relay', instance: 'relay-1', version: '0', env: {} });
  t.after(() => telemetry.shutdown());
  const shown = new LogMetrics(telemetry.metrics, { watchesRetention: true, removesUnknown: true });
  const names = new LogNames('');
  const [stream] = names.factsStreams;
  shown.startAtZero(names);
  shown.onEvent({ type: 'check-failed', what: 'leaders', error: new TypeError('x') });
  shown.onEvent({ type: 'full', stream: stream! });
  shown.onEvent({ type: 'unknown-consumers', stream: stream!, count: 3, name: 'c' });
  shown.onEvent({ type: 'dead-letter', role: 'agent.echo' });
  shown.onEvent({ type: 'reconnected', server: 's' });
  shown.onFirstEntry(stream!, 2_000, undefined);
  assert.doesNotMatch(await telemetry.metricsText(), /^hopline_log_age_limit_seconds/m);
  shown.onFirstEntry(stream!, 2_000, 604_800_000);
  shown.onFirstEntry('OTHER', 3_000, 1_000);
  const text = await telemetry.metricsText();
  const shownValue = (name: string, ...labels: string[]) =>
    text
      .split('\n')
      .find(line => line.startsWith(`${name}{`) && labels.every(label => line.includes(label)))
      ?.replace(/^.* /, '');
  assert.equal(shownValue('hopline_log_events_total', 'kind="check_failed"'), '1');
  assert.equal(shownValue('hopline_log_shortages_total', `stream="${stream}"`, 'reason="full"'), '1');
  assert.equal(shownValue('hopline_log_shortages_total', `stream="${stream}"`, 'reason="nearly_full"'), '0');
  assert.equal(shownValue('hopline_unknown_removed_total', 'kind="unknown_consumers"', `stream="${stream}"`), '3');
  assert.equal(shownValue('hopline_dead_letters_total', 'agent="echo"'), '1');
  assert.equal(shownValue('hopline_log_connected'), '1');
  assert.equal(shownValue('hopline_log_first_timestamp_seconds', `stream="${stream}"`), '2');
  assert.equal(shownValue('hopline_log_age_limit_seconds', `stream="${stream}"`), '604800');
  assert.ok(!text.includes('stream="OTHER"'));
});

import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { diag } from '@opentelemetry/api';
import { createLogger } from './logger.ts';
import { reportSdkFaults, SDK_FAULT_DELAY_MS, SDK_FAULT_INTERVAL_MS } from './sdk-faults.ts';

function rig(t: TestContext, onRejected?: (spans: number) => void) {
  const clock = { monotonicMs: 0, wallMs: Date.UTC(2026, 0) };
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => clock.monotonicMs);
  t.mock.method(Date, 'now', () => clock.wallMs);
  t.after(() => diag.disable());
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const faults = reportSdkFaults(createLogger({ service: 's', instance: 'i', level: 'info', destination }), onRejected);
  const read = () =>
    lines
      .map(line => JSON.parse(line))
      .map(one => [one.reason, one.spans_lost, one.suppressed, one.msg, ...(one.signal === undefined ? [] : [one.signal])]);
  const tick = (ms: number) => {
    clock.monotonicMs += ms;
    clock.wallMs += ms;
    t.mock.timers.tick(ms);
  };
  return { lines, faults, read, tick, clock };
}

test('faults of the SDK are logged in one line per interval, with a code and without their message', t => {
  const { lines, read, tick } = rig(t);
  diag.error('{"stack":"PLANTED","code":"ECONNREFUSED"}');
  tick(SDK_FAULT_DELAY_MS - 1);
  assert.equal(lines.length, 0);
  tick(1);
  for (let n = 0; n < 9; n++) diag.warn('PLANTED');
  diag.info('PLANTED');
  tick(SDK_FAULT_INTERVAL_MS - 1);
  assert.equal(lines.length, 1);
  tick(1);
  assert.deepEqual(read(), [
    ['ECONNREFUSED', 0, 0, 'telemetry export failed'],
    ['unknown', 0, 8, 'telemetry export failed'],
  ]);
  assert.doesNotMatch(lines.join(''), /PLANTED/);
  tick(2 * SDK_FAULT_INTERVAL_MS);
  assert.equal(lines.length, 2, 'no line without a fault');
});

test('the line counts all spans lost so far, and names the failed export rather than the queue that filled up because of it', t => {
  const { faults, read, tick } = rig(t);
  for (let n = 0; n < 3; n++) faults.lost('traces', 'queue_full', 1);
  faults.lost('traces', 'timeout', 64);
  faults.lost('traces', 'queue_full', 1);
  tick(SDK_FAULT_DELAY_MS);
  faults.lost('traces', 'queue_full', 1);
  tick(SDK_FAULT_INTERVAL_MS / 2);
  faults.lost('traces', 'queue_full', 1);
  faults.flush();
  tick(SDK_FAULT_INTERVAL_MS);
  assert.deepEqual(read(), [
    ['timeout', 68, 4, 'telemetry export failed', 'traces'],
    ['queue_full', 2, 1, 'last spans not exported', 'traces'],
  ]);
});

test('the line names the newest known cause: neither a full queue nor a fault without a code hides it', t => {
  const { faults, read, tick } = rig(t);
  diag.error('metrics export failed');
  faults.lost('traces', 'timeout', 1);
  diag.error('{"stack":"PLANTED","code":"503"}');
  diag.error('metrics export failed');
  faults.lost('traces', 'queue_full', 1);
  tick(SDK_FAULT_DELAY_MS);
  assert.deepEqual(read(), [['http_503', 2, 4, 'telemetry export failed', 'traces']]);
});

test('a clock that is set back does not delay the line', t => {
  const { faults, lines, tick, clock } = rig(t);
  faults.lost('traces', 'timeout', 1);
  tick(SDK_FAULT_DELAY_MS);
  clock.wallMs -= 3_600_000;
  faults.lost('traces', 'timeout', 1);
  tick(SDK_FAULT_INTERVAL_MS);
  assert.equal(lines.length, 2);
});

test('spans that a collector rejects of a request that it accepted are counted, and its warnings are not faults', t => {
  const rejected: number[] = [];
  const { read, tick } = rig(t, spans => void rejected.push(spans));
  const answer = (partialSuccess: object) =>
    diag.warn('Received Partial Success response:', JSON.stringify({ ...partialSuccess, errorMessage: 'PLANTED' }));
  answer({});
  answer({ rejectedSpans: '0' });
  tick(SDK_FAULT_DELAY_MS);
  assert.deepEqual(read(), []);
  answer({ rejectedSpans: '7' });
  answer({ rejectedSpans: 2 });
  answer({ rejectedDataPoints: 5 });
  tick(SDK_FAULT_DELAY_MS);
  assert.deepEqual(read(), [['rejected_by_collector', 9, 2, 'telemetry export failed', 'metrics, traces']]);
  assert.deepEqual(rejected, [7, 2]);
});

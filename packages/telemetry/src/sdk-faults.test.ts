import assert from 'node:assert/strict';
import test from 'node:test';
import { diag } from '@opentelemetry/api';
import { createLogger } from './logger.ts';
import { reportSdkFaults, SDK_FAULT_INTERVAL_MS } from './sdk-faults.ts';

test('faults of the SDK are one line per interval, with a code and without their message', () => {
  const lines: string[] = [];
  let nowMs = 0;
  reportSdkFaults(
    createLogger({ service: 's', instance: 'i', level: 'info', destination: { write: line => lines.push(line) } }),
    () => nowMs,
  );
  try {
    diag.error('{"stack":"PLANTED","code":"ECONNREFUSED"}');
    for (let n = 0; n < 9; n++) diag.warn('PLANTED');
    nowMs = SDK_FAULT_INTERVAL_MS - 1;
    diag.error('PLANTED');
    assert.equal(lines.length, 1);
    nowMs = SDK_FAULT_INTERVAL_MS;
    diag.error('PLANTED');
    diag.info('PLANTED');
  } finally {
    diag.disable();
  }
  const parsed = lines.map(line => JSON.parse(line));
  assert.deepEqual(
    parsed.map(({ reason, suppressed }) => [reason, suppressed]),
    [
      ['ECONNREFUSED', 0],
      ['unknown', 10],
    ],
  );
  assert.doesNotMatch(lines.join(''), /PLANTED/);
});

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { LogDenied, LogUnavailable } from '@hopline/log';
import { JetStreamApiError } from '@nats-io/jetstream';
import { NoRespondersError, PermissionViolationError, TimeoutError } from '@nats-io/nats-core';
import type { LogEvent } from './options.ts';
import { checkPeriodically } from './periodic-check.ts';

/** Runs a check that rejects with each error in turn. */
async function runCheck(errors: readonly unknown[]) {
  mock.timers.enable({ apis: ['setInterval'] });
  const closing = new AbortController();
  const events: LogEvent[] = [];
  let runs = 0;
  checkPeriodically({ closed: closing.signal, onEvent: event => void events.push(event) }, 100, 'streams', () =>
    Promise.reject(errors[runs++]),
  );
  for (const _ of errors) {
    mock.timers.tick(100);
    await new Promise(resolve => setImmediate(resolve));
  }
  closing.abort();
  mock.timers.tick(100);
  mock.timers.reset();
  return { events, runs };
}

test('a check that fails because of a defect is reported, and runs again', async () => {
  const defect = new TypeError('undefined is not a function');
  const { events, runs } = await runCheck([defect, defect]);
  assert.equal(runs, 2);
  const expected = { type: 'check-failed', what: 'streams', error: defect };
  assert.deepEqual(events, [expected, expected]);
});

test('a check that fails because of an outage is not reported', async () => {
  const outages = [
    new LogUnavailable('the log is closed'),
    new LogDenied('NATS does not permit it'),
    new JetStreamApiError({ code: 400, err_code: 10_003, description: 'bad request' }),
    new TimeoutError(),
    new NoRespondersError('$JS.API.INFO'),
    new PermissionViolationError('denied', 'publish', 'subject'),
  ];
  const { events, runs } = await runCheck(outages);
  assert.equal(runs, outages.length);
  assert.deepEqual(events, []);
});
